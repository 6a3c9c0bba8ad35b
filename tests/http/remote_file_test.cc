// Objects are opened by one request, and buckets are found as AWS's own tools find them.
#include "http/remote_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "http/s3.h"
#include "lowtide/error.h"
#include "os/temp_folder.h"
#include "support/data_file.h"
#include "support/http_rig.h"
#include "support/http_server.h"
#include "support/thrown.h"

namespace lowtide::remote_file_test {
namespace {

// Variables of the environment until its end; all others of AWS are unset.
class Environment {
 public:
  using Settings = std::vector<std::pair<std::string, std::string>>;
  explicit Environment(const Settings& set) {
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
                             "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ENDPOINT_URL",
                             "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "HOME"}) {
      const char* const was = std::getenv(name);
      before_[name] = was != nullptr ? std::optional<std::string>(was) : std::nullopt;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : set) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
  }

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

class RemoteFileTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Transport::probe(); !why.empty())
      GTEST_SKIP() << "no http: " << why;
    transport_ = std::make_shared<Transport>(quick());
  }
  static std::string read(const RemoteFile& file, std::uint64_t offset, std::uint64_t size) {
    std::string out(size, '\0');
    file.read_exact(offset, std::as_writable_bytes(std::span(out)));
    return out;
  }
  std::shared_ptr<Transport> transport_;
  const std::string held_ = pattern(200'000);
};

TEST_F(RemoteFileTest, IsOpenedByOneRequestThatBringsItsFirstBytes) {
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  const RemoteFile file(transport_, server.url("/a b?sig=SECRET"));
  EXPECT_EQ(file.shard().path, server.url("/a b"));
  EXPECT_EQ(file.shard().size_bytes, held_.size());
  ASSERT_NE(file.shard().remote, nullptr);
  EXPECT_EQ(file.shard().remote->url, server.url("/a%20b?sig=SECRET"));
  EXPECT_EQ(file.shard().remote->etag, "\"v1\"");
  EXPECT_EQ(read(file, 0, 100), held_.substr(0, 100));
  EXPECT_EQ(read(file, 60'000, 5'536), held_.substr(60'000, 5'536));
  EXPECT_EQ(server.requests(), 1);
  EXPECT_EQ(read(file, 65'000, 1'000), held_.substr(65'000, 1'000));
  EXPECT_EQ(server.requests(), 2);
  EXPECT_THROW((void)read(file, 199'999, 2), FormatError);
}

TEST_F(RemoteFileTest, HasAnotherVersionWhenItsETagOrSizeDiffers) {
  std::string etag = "\"v1\"";
  std::string held = held_;
  HttpServer server([&](const auto& request) { return whole_answer(request, held, etag); });
  const std::uint64_t first = RemoteFile(transport_, server.url("/o")).shard().version;
  EXPECT_EQ(RemoteFile(transport_, server.url("/p")).shard().version, first);
  etag = "\"v2\"";
  const std::uint64_t second = RemoteFile(transport_, server.url("/o")).shard().version;
  EXPECT_NE(second, first);
  held.pop_back();
  EXPECT_NE(RemoteFile(transport_, server.url("/o")).shard().version, second);
}

TEST_F(RemoteFileTest, ThatIsMissingIsAnErrorWithoutItsSecret) {
  HttpServer server([&](const auto&) { return ServedAnswer{.status = 404, .body = "no"}; });
  const auto error =
      caught<IoError>([&] { (void)RemoteFile(transport_, server.url("/o?sig=SECRET")); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->err, ENOENT);
  EXPECT_EQ(error->path, server.url("/o"));
  EXPECT_EQ(std::string(error->what()).find("SECRET"), std::string::npos);
}

TEST_F(RemoteFileTest, ManyAreOpenedAtOnceAndMissingOnesAreNothing) {
  HttpServer server([&](const auto& request) {
    if (request.target == "/denied") return ServedAnswer{.status = 403, .body = "no"};
    if (request.target.starts_with("/none")) return ServedAnswer{.status = 404, .body = "no"};
    return whole_answer(request, held_, "\"" + request.target + "\"");
  });
  std::vector<std::string> addresses;
  for (int i = 0; i < 300; ++i)
    addresses.push_back(server.url((i % 3 == 0 ? "/none" : "/o") + std::to_string(i)));
  const auto files = RemoteFile::open_all(transport_, addresses, nullptr);
  ASSERT_EQ(files.size(), addresses.size());
  EXPECT_EQ(server.requests(), 300);
  std::vector<std::string> found(300, std::string(50, '\0'));
  std::vector<RemoteFile::Range> ranges;
  for (std::size_t i = 0; i < files.size(); ++i) {
    ASSERT_EQ(files[i] == nullptr, i % 3 == 0) << i;
    if (files[i] == nullptr) continue;
    EXPECT_EQ(files[i]->shard().path, addresses[i]);
    EXPECT_EQ(files[i]->shard().remote->etag, "\"/o" + std::to_string(i) + "\"");
    ranges.push_back({files[i].get(), 100 * i, std::as_writable_bytes(std::span(found[i]))});
  }
  RemoteFile::read_all(ranges);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i] == nullptr) continue;
    EXPECT_EQ(found[i], held_.substr(100 * i, 50));
  }
  addresses.insert(addresses.begin() + 7, server.url("/denied"));
  const auto error =
      caught<IoError>([&] { (void)RemoteFile::open_all(transport_, addresses, nullptr); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->err, EACCES);
  EXPECT_EQ(error->path, server.url("/denied"));
}

TEST_F(RemoteFileTest, InABucketIsSignedForItsRegion) {
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  const Environment environment(Environment::Settings{{"AWS_ENDPOINT_URL", server.url("")},
                                                      {"AWS_REGION", "eu-west-1"},
                                                      {"AWS_ACCESS_KEY_ID", "AKID"},
                                                      {"AWS_SECRET_ACCESS_KEY", "SECRET"},
                                                      {"AWS_SESSION_TOKEN", "TOKEN"}});
  const RemoteFile file(transport_, "s3://bucket/a b/c+d.npy");
  EXPECT_EQ(file.shard().path, "s3://bucket/a b/c+d.npy");
  const ServedRequest seen = server.seen().at(0);
  EXPECT_EQ(seen.target, "/bucket/a%20b/c%2Bd.npy");
  const std::string signature = seen.header("authorization");
  EXPECT_TRUE(signature.starts_with("AWS4-HMAC-SHA256 Credential=AKID/")) << signature;
  EXPECT_NE(signature.find("/eu-west-1/s3/aws4_request"), std::string::npos) << signature;
  EXPECT_EQ(signature.find("SECRET"), std::string::npos);
  EXPECT_EQ(seen.header("x-amz-security-token"), "TOKEN");
}

TEST_F(RemoteFileTest, InAPublicBucketIsNotSigned) {
  HttpServer server([&](const auto& request) { return whole_answer(request, held_); });
  const Environment environment(Environment::Settings{{"AWS_ENDPOINT_URL", server.url("")}});
  const RemoteFile file(transport_, "s3://bucket/k");
  EXPECT_EQ(server.seen().at(0).header("authorization"), "");
}

TEST(S3, TakesTheKeysOfAProfile) {
  const char* const text =
      "# a comment\n[other]\naws_access_key_id=O\naws_secret_access_key = P \n"
      "[ default ]\r\naws_access_key_id = A\r\naws_secret_access_key=B/c+d=\r\n"
      "aws_session_token=T\n[half]\naws_access_key_id = H\n";
  const auto keys = parse_credentials(text, "default");
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->access_key, "A");
  EXPECT_EQ(keys->secret_key, "B/c+d=");
  EXPECT_EQ(keys->token, "T");
  EXPECT_EQ(parse_credentials(text, "other")->secret_key, "P");
  EXPECT_FALSE(parse_credentials(text, "half"));
  EXPECT_FALSE(parse_credentials(text, "none"));
  EXPECT_FALSE(parse_credentials("", "default"));
}

TEST(S3, FindsKeysInTheEnvironmentThenInTheFile) {
  const TempFolder folder;
  const std::string file =
      folder.write("credentials", "[default]\naws_access_key_id=F\naws_secret_access_key=G\n");
  {
    const Environment environment(Environment::Settings{{"AWS_SHARED_CREDENTIALS_FILE", file},
                                                        {"AWS_ACCESS_KEY_ID", "E"},
                                                        {"AWS_SECRET_ACCESS_KEY", "S"}});
    EXPECT_EQ(find_s3_keys()->access_key, "E");
  }
  {
    const Environment environment(Environment::Settings{{"AWS_SHARED_CREDENTIALS_FILE", file}});
    EXPECT_EQ(find_s3_keys()->access_key, "F");
  }
  const Environment environment(Environment::Settings{{"HOME", folder.path()}});
  EXPECT_FALSE(find_s3_keys());
}

TEST(S3, IsInARegionOrAtAnEndpoint) {
  {
    const Environment environment(Environment::Settings{});
    const auto error = caught<IoError>([] { (void)find_s3_place("s3://b/k"); });
    ASSERT_TRUE(error);
    EXPECT_NE(std::string(error->what()).find("AWS_REGION"), std::string::npos);
  }
  {
    const Environment environment(Environment::Settings{{"AWS_DEFAULT_REGION", "eu-north-1"}});
    EXPECT_EQ(find_s3_place("").region, "eu-north-1");
  }
  {
    const Environment environment(Environment::Settings{{"AWS_ENDPOINT_URL", "http://h:1"}});
    EXPECT_EQ(find_s3_place("").region, "us-east-1");
    EXPECT_EQ(find_s3_place("").endpoint, "http://h:1");
  }
  const Environment environment(Environment::Settings{{"AWS_REGION", "evil.example/"}});
  EXPECT_THROW((void)find_s3_place(""), IoError);
}

}  // namespace
}  // namespace lowtide::remote_file_test

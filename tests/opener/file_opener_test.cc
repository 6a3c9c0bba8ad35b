// Files and objects are opened in the same way, and arrays are opened from what was found in them.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/transport.h"
#include "lowtide/array.h"
#include "lowtide/error.h"
#include "lowtide/files.h"
#include "os/temp_folder.h"
#include "support/data_file.h"
#include "support/http_server.h"
#include "support/thrown.h"

namespace lowtide::file_opener_test {
namespace {

std::string read(const FileReader& file, std::uint64_t offset, std::uint64_t size) {
  std::string out(size, '\0');
  const FileRange range{.offset_bytes = offset, .out = std::as_writable_bytes(std::span(out))};
  file.read({&range, 1});
  return out;
}

class FileOpenerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Transport::probe(); !why.empty())
      GTEST_SKIP() << "no http: " << why;
  }
  TempFolder folder_;
  const std::string held_ = pattern(50'000);
};

TEST_F(FileOpenerTest, ReadsAFileAndAnObjectAlike) {
  HttpServer server([&](const auto& request) {
    return request.target == "/m.h5" ? whole_answer(request, held_)
                                     : ServedAnswer{.status = 404, .body = "no"};
  });
  FileOpener opener;
  const std::string path = folder_.write("m.h5", held_);
  for (const std::string& where : {path, server.url("/m.h5")}) {
    const FileReader file = opener.open(where);
    EXPECT_EQ(file.file().path, where);
    EXPECT_EQ(file.file().size_bytes, held_.size());
    EXPECT_EQ(file.file().remote != nullptr, is_address(where));
    EXPECT_EQ(read(file, 40'000, 9'000), held_.substr(40'000, 9'000));
    EXPECT_EQ(read(file, 3, 5), held_.substr(3, 5));
    EXPECT_EQ(read(file, 50'000, 0), "");
    EXPECT_THROW((void)read(file, 49'999, 2), FormatError);
  }
  EXPECT_FALSE(opener.open_if_there(server.url("/none")));
  EXPECT_FALSE(opener.open_if_there(folder_.path() + "/none"));
  EXPECT_TRUE(opener.open_if_there(path));
  const auto error = caught<IoError>([&] { (void)opener.open(server.url("/none?sig=SECRET")); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->err, ENOENT);
  EXPECT_EQ(std::string(error->what()).find("SECRET"), std::string::npos);
}

TEST_F(FileOpenerTest, RequestsManyRangesAtTheSameTime) {
  std::atomic<int> flying = 0, most = 0;
  HttpServer server([&](const auto& request) {
    most = std::max(most.load(), ++flying);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --flying;
    return whole_answer(request, held_);
  });
  FileOpener opener;
  const FileReader file = opener.open(server.url("/o"));
  std::vector<std::string> found(20, std::string(100, '\0'));
  std::vector<FileRange> ranges;
  for (std::size_t i = 0; i < found.size(); ++i)
    ranges.push_back({10'000 + 1'000 * i, std::as_writable_bytes(std::span(found[i]))});
  file.read(ranges);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i], held_.substr(10'000 + 1'000 * i, 100));
  EXPECT_GT(most, 3);
}

TEST_F(FileOpenerTest, AnArrayIsReadFromTheVersionThatWasLookedAt) {
  std::string etag = "\"v1\"";
  HttpServer server([&](const auto& request) { return whole_answer(request, held_, etag); });
  FileOpener opener;
  const FileReader file = opener.open(server.url("/o"));
  const auto open = [&] {
    return Array::open_chunks({.format = "hdf5",
                               .dtype = "|u1",
                               .shape = {100, 10},
                               .chunk_shape = {50, 10},
                               .files = {file.file()},
                               .offsets_bytes = {30'000, 10'000}});
  };
  std::string row(10, '\0');
  open().read(60, 1, std::as_writable_bytes(std::span(row)));
  EXPECT_EQ(row, held_.substr(10'100, 10));
  etag = "\"v2\"";
  EXPECT_THROW(open().read(60, 1, std::as_writable_bytes(std::span(row))), IoError);
  EXPECT_THROW((void)read(file, 20'000, 10), IoError);
}

TEST_F(FileOpenerTest, FoldersAreListedByWhoCan) {
  folder_.write("b", "x");
  folder_.write("a", "x");
  FileOpener opener;
  EXPECT_EQ(opener.names_in(folder_.path()), (std::vector<std::string>{"a", "b"}));
  EXPECT_THROW((void)opener.names_in("http://127.0.0.1:9/f/"), std::invalid_argument);
  const FileOpener listing(nullptr, [](const std::string& beginning, bool) {
    return std::vector<std::string>{beginning + "y", beginning + "x"};
  });
  EXPECT_EQ(listing.names_in("s3://b/f/"), (std::vector<std::string>{"x", "y"}));
}

TEST(PathIn, KeepsTheQueryBehindThePath) {
  EXPECT_EQ(path_in("/data", "x/y"), "/data/x/y");
  EXPECT_EQ(path_in("s3://b/f/", "a ?.bin"), "s3://b/f/a ?.bin");
  EXPECT_EQ(path_in("s3://b/f", "x"), "s3://b/f/x");
  EXPECT_EQ(path_in("https://h/f.zarr?sig=1", "a b?c/0"), "https://h/f.zarr/a%20b%3Fc/0?sig=1");
  EXPECT_EQ(path_in("https://h/f/#here", "x"), "https://h/f/x#here");
}

}  // namespace
}  // namespace lowtide::file_opener_test

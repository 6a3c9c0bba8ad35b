#include "http/listing.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "http/s3.h"
#include "http/transport.h"
#include "lowtide/error.h"
#include "support/http_server.h"

namespace lowtide::listing_test {
namespace {

std::string page(const std::string& inside) {
  return "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/\">" + inside +
         "</ListBucketResult>";
}

std::string object(const std::string& key) {
  return "<Contents><Key>" + key + "</Key><ETag>&quot;x&quot;</ETag><Size>1</Size></Contents>";
}

TEST(Listing, IsReadWithAllCharacters) {
  const ListingPage found =
      parse_listing(page("<Prefix>p</Prefix>" + object("p/a &amp; b+c%41?.npy") +
                         object("&lt;&gt;&apos;&quot;") + object("&#x63;&#233;&#x1F600;\xC3\xA9") +
                         "<CommonPrefixes><Prefix>q/</Prefix></CommonPrefixes>"
                         "<IsTruncated>false</IsTruncated>"),
                    "s3://b/");
  EXPECT_EQ(found.keys, (std::vector<std::string>{"p/a & b+c%41?.npy", "<>'\"",
                                                  "c\xC3\xA9\xF0\x9F\x98\x80\xC3\xA9"}));
  EXPECT_EQ(found.next, "");
}

TEST(Listing, SaysHowToGoOn) {
  const std::string more = "<IsTruncated>true</IsTruncated>";
  const std::string token = "<NextContinuationToken>1/a&amp;b==</NextContinuationToken>";
  const ListingPage found = parse_listing(page(object("a") + more + token), "s3://b/");
  EXPECT_EQ(found.keys, std::vector<std::string>{"a"});
  EXPECT_EQ(found.next, "1/a&b==");
  EXPECT_EQ(parse_listing(page(token), "s3://b/").next, "") << "nothing is left";
}

TEST(Listing, IsRefusedIfItIsNotWhole) {
  const std::string whole = page(object("a"));
  for (const std::string& text :
       {std::string(), std::string("<html>no</html>"), whole.substr(0, whole.size() - 1),
        page("<Contents><Size>1</Size></Contents>"), page(object("")), page(object("a&no;")),
        page(object("a&#x110000;")), page(object("a&#xD800;")), page(object("a&")),
        page(object("a") + "<IsTruncated>true</IsTruncated>")}) {
    EXPECT_THROW((void)parse_listing(text, "s3://b/"), FormatError) << text;
  }
}

TEST(Listing, IsAskedForWithSortedNames) {
  EXPECT_EQ(listing_query("a b/c", false, ""), "?delimiter=%2F&list-type=2&prefix=a%20b%2Fc");
  EXPECT_EQ(listing_query("", true, "x=/"), "?continuation-token=x%3D%2F&list-type=2&prefix=");
}

TEST(Listing, IsNeededForPatternsAndFolders) {
  for (const char* address : {"s3://b/", "s3://b/a/", "s3://b/a*", "s3://b/a?.npy", "s3://b/[ab]",
                              "http://h/*.npy", "https://h:1/a/", "http://h/a/*?key=x"}) {
    EXPECT_TRUE(is_listed(address)) << address;
  }
  for (const char* address : {"s3://b/a", "http://h/a?b=*", "http://h/a[1].npy", "http://h", "/a/*",
                              "a/", "", "http://h/a?b/"}) {
    EXPECT_FALSE(is_listed(address)) << address;
  }
}

TEST(Listing, BeginsWithWhatIsCertain) {
  const ListedAddress folder = listed_address("s3://b/a/");
  EXPECT_EQ(folder.beginning, "s3://b/a/");
  EXPECT_TRUE(folder.folder && !folder.deep);
  const ListedAddress flat = listed_address("s3://b/a/part-*.npy");
  EXPECT_EQ(flat.beginning, "s3://b/a/part-");
  EXPECT_TRUE(!flat.folder && !flat.deep);
  const ListedAddress deep = listed_address("s3://b/x[ab]/m.npy");
  EXPECT_EQ(deep.beginning, "s3://b/x");
  EXPECT_TRUE(!deep.folder && deep.deep);
}

// The variables of AWS's tools while a test runs.
class Endpoint {
 public:
  explicit Endpoint(const std::string& url) {
    ::setenv("AWS_ENDPOINT_URL", url.c_str(), 1);
    ::setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere", 1);
  }
  ~Endpoint() {
    ::unsetenv("AWS_ENDPOINT_URL");
    ::unsetenv("AWS_SHARED_CREDENTIALS_FILE");
  }
};

class ListBucket : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Transport::probe(); !why.empty())
      GTEST_SKIP() << "no http: " << why;
  }
};

TEST_F(ListBucket, GoesThroughAllPages) {
  HttpServer server([&](const ServedRequest& request) {
    ServedAnswer answer;
    answer.status = 200;
    const bool second = request.target.find("continuation-token=two") != std::string::npos;
    if (request.number == 1) {  // the second page at first breaks off
      answer.body = page(object("a/2.npy"));
      answer.stop_after = 20;
      answer.reset = true;
    } else if (second) {
      answer.body = page(object("a/2.npy"));
    } else {
      answer.body = page(object("a/1.npy") + object("a/") + "<IsTruncated>true</IsTruncated>" +
                         "<NextContinuationToken>two</NextContinuationToken>");
    }
    return answer;
  });
  const Endpoint endpoint(server.url(""));
  EXPECT_EQ(
      list_bucket("s3://bucket/a/", false),
      (std::vector<std::string>{"s3://bucket/a/1.npy", "s3://bucket/a/", "s3://bucket/a/2.npy"}));
  EXPECT_EQ(server.seen().at(0).target, "/bucket/?delimiter=%2F&list-type=2&prefix=a%2F");
  EXPECT_EQ(server.seen().at(0).headers.count("range"), 0U);
}

std::vector<std::string> list_from_server(int status, const std::string& body) {
  HttpServer server([&](const ServedRequest&) {
    ServedAnswer answer;
    answer.status = status;
    answer.body = body;
    return answer;
  });
  const Endpoint endpoint(server.url(""));
  return list_bucket("s3://bucket/", true);
}

TEST_F(ListBucket, RefusesWhatIsNoList) {
  EXPECT_THROW((void)list_from_server(200, "<html></html>"), FormatError);
  const std::string same =
      "<IsTruncated>true</IsTruncated><NextContinuationToken>1</NextContinuationToken>";
  EXPECT_THROW((void)list_from_server(200, page(same)), FormatError) << "the same page for ever";
  for (const auto& [status, err] : {std::pair{404, ENOENT}, {403, EACCES}, {206, EIO}}) {
    try {
      (void)list_from_server(status, page(object("a")));
      ADD_FAILURE() << status;
    } catch (const IoError& error) {
      EXPECT_EQ(error.err, err) << status;
      EXPECT_EQ(error.path, "s3://bucket/");
    }
  }
}

}  // namespace
}  // namespace lowtide::listing_test

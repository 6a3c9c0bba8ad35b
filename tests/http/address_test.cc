#include "http/address.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "support/thrown.h"

namespace lowtide::address_test {
namespace {

TEST(Address, IsToldFromAPath) {
  for (const char* text : {"http://h/x", "https://h/x", "s3://b/k", "HTTPS://H/x", "S3://b/k"}) {
    EXPECT_TRUE(is_address(text)) << text;
  }
  for (const char* text :
       {"", "x.npy", "/http://x", "http:/x", "file:///x", "ftp://h/x", "s3:/b"}) {
    EXPECT_FALSE(is_address(text)) << text;
  }
}

TEST(Address, IsShownWithoutPasswordQueryAndFragment) {
  EXPECT_EQ(shown_address("https://h/a/b.npy"), "https://h/a/b.npy");
  EXPECT_EQ(shown_address("https://u:p@h:81/a?X-Amz-Signature=abc#f"), "https://h:81/a");
  EXPECT_EQ(shown_address("https://u:p@ss@h/a@b"), "https://h/a@b");
  EXPECT_EQ(shown_address("https://h?token=1"), "https://h");
  EXPECT_EQ(shown_address("https://h#f?x"), "https://h");
  EXPECT_EQ(shown_address("s3://b/a?b#c"), "s3://b/a?b#c") << "the key of an object";
  EXPECT_EQ(shown_address("s3://KEY:SECRET@b/a"), "s3://b/a");
  EXPECT_EQ(shown_address("/data/a?b"), "/data/a?b") << "a local file";
  EXPECT_EQ(shown_address("http://[::1]:8080/a"), "http://[::1]:8080/a");
}

TEST(Address, NeverShowsAPasswordThatIsNotEncoded) {
  for (const char* text :
       {"https://u:SECRET/x@h/a", "https://u:SECRET?x@h/a", "https://u:SECRET#x@h/a",
        "s3://KEY:SECRET/x@b/a", "https://u:p SECRET/x@h/a", "http://SECRET@"}) {
    EXPECT_EQ(shown_address(text).find("SECRET"), std::string::npos) << text;
    const std::string why = std::string(text).starts_with("s3")
                                ? thrown<std::invalid_argument>([&] { (void)parse_s3(text); })
                                : thrown<std::invalid_argument>([&] { (void)parse_http(text); });
    EXPECT_EQ(why.find("SECRET"), std::string::npos) << why;
  }
}

TEST(Address, KnowsWhetherItHoldsASecret) {
  EXPECT_FALSE(has_secret("https://h/a"));
  EXPECT_FALSE(has_secret("s3://b/a?b"));
  EXPECT_FALSE(has_secret("/a?b"));
  EXPECT_TRUE(has_secret("https://h/a?b"));
  EXPECT_TRUE(has_secret("https://u@h/a"));
}

TEST(Address, IsParsedIntoItsParts) {
  const Address address = parse_http("HTTPS://User:Pass@Host.Example:8443/a/b%20c?x=1&y=%2F#part");
  EXPECT_EQ(address.scheme, "https");
  EXPECT_EQ(address.user_info, "User:Pass");
  EXPECT_EQ(address.host, "host.example");
  EXPECT_EQ(address.port, "8443");
  EXPECT_EQ(address.path, "/a/b%20c");
  EXPECT_EQ(address.query, "?x=1&y=%2F");
  EXPECT_EQ(address.url(), "https://User:Pass@host.example:8443/a/b%20c?x=1&y=%2F");
  EXPECT_EQ(parse_http("http://h").path, "/");
  EXPECT_EQ(parse_http("http://h?x").url(), "http://h/?x");
  EXPECT_EQ(parse_http("http://[FE80::1]:81/a").host, "[fe80::1]");
}

TEST(Address, KnowsItsServer) {
  EXPECT_EQ(parse_http("http://h/a").origin(), parse_http("HTTP://H:80/b").origin());
  EXPECT_EQ(parse_http("https://h/a").origin(), parse_http("https://h:443/b").origin());
  EXPECT_NE(parse_http("https://h/a").origin(), parse_http("http://h/a").origin());
  EXPECT_NE(parse_http("http://h:81/a").origin(), parse_http("http://h/a").origin());
}

TEST(Address, EncodesWhatAUrlMustNotContain) {
  EXPECT_EQ(parse_http("http://h/a b+c").path, "/a%20b+c");
  EXPECT_EQ(parse_http("http://h/100%/50%zz/%41").path, "/100%25/50%25zz/%41");
  EXPECT_EQ(parse_http("http://h/\xC3\xA9\"<>").path, "/%C3%A9%22%3C%3E");
  EXPECT_EQ(parse_http("http://h/a?q=a b").query, "?q=a%20b");
}

TEST(Address, RefusesWhatCouldBecomeAnotherHeader) {
  for (const char* text :
       {"http://h/a\r\nX: y", "http://h/a\nb", "http://h/\x7F", "http://h\t/a"}) {
    EXPECT_THROW((void)parse_http(text), std::invalid_argument);
  }
  EXPECT_EQ(percent_encoded("a\r\nX: y"), "a%0D%0AX%3A%20y");
}

TEST(Address, RefusesHostsAndPortsThatAreNone) {
  for (const char* text : {"http://", "http:///a", "http://:80/a", "http://h:x/a",
                           "http://h:65536/a", "http://h:123456/a", "http://a b/c", "http://h%2f/a",
                           "http://[::1/a", "http://[zz]/a", "ftp://h/a", "x"}) {
    EXPECT_THROW((void)parse_http(text), std::invalid_argument) << text;
  }
}

TEST(S3Name, TakesTheKeyAsItIs) {
  const S3Name name = parse_s3("s3://bucket/a b/c+d%41?e#f//g");
  EXPECT_EQ(name.bucket, "bucket");
  EXPECT_EQ(name.key, "a b/c+d%41?e#f//g");
  for (const char* text : {"s3://", "s3://b", "s3://b/", "s3:///k", "s3://a@b/k", "s3://.b/k"}) {
    EXPECT_THROW((void)parse_s3(text), std::invalid_argument) << text;
  }
}

TEST(S3Address, IsOfPathStyleWithAnEndpoint) {
  const S3Name name{"my.bucket", "a b/c+d%\xC3\xA9"};
  EXPECT_EQ(s3_address(name, {"http://127.0.0.1:8333", "us-east-1"}).url(),
            "http://127.0.0.1:8333/my.bucket/a%20b/c%2Bd%25%C3%A9");
  EXPECT_EQ(s3_address(name, {"https://gateway/s3/", "x"}).url(),
            "https://gateway/s3/my.bucket/a%20b/c%2Bd%25%C3%A9");
}

TEST(S3Address, IsTheHostOfTheBucketWithoutAnEndpoint) {
  EXPECT_EQ(s3_address({"bucket", "k"}, {std::nullopt, "eu-west-1"}).url(),
            "https://bucket.s3.eu-west-1.amazonaws.com/k");
  EXPECT_EQ(s3_address({"my.bucket", "k"}, {std::nullopt, "eu-west-1"}).url(),
            "https://s3.eu-west-1.amazonaws.com/my.bucket/k")
      << "no certificate is valid for a bucket with a dot";
}

TEST(Address, KnowsTheHostsOfThisMachine) {
  for (const char* host : {"localhost", "LOCALHOST", "a.localhost", "localhost.", "127.0.0.1",
                           "127.9.9.9", "0.0.0.0", "[::1]", "::1", "[::ffff:127.0.0.1]", "[::]"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
    EXPECT_TRUE(is_inner_host(host)) << host;
  }
  for (const char* host : {"169.254.169.254", "[fe80::1]", "::ffff:169.254.1.1"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
    EXPECT_TRUE(is_inner_host(host)) << host;
  }
  for (const char* host :
       {"example.org", "128.0.0.1", "127.0.0.1.example.org", "1.2.3", "1.2.3.400", "[2001:db8::1]",
        "notlocalhost", "feed.example", "10.0.0.1"}) {
    EXPECT_FALSE(is_inner_host(host)) << host;
  }
}

}  // namespace
}  // namespace lowtide::address_test

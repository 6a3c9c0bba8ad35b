#include "http/answer.h"

#include <gtest/gtest.h>

namespace lowtide::answer_test {
namespace {

TEST(ContentRange, IsReadExactly) {
  const auto range = parse_content_range(" bytes 5-9/100\r\n");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 5U);
  EXPECT_EQ(range->last, 9U);
  EXPECT_EQ(range->total, 100U);
  EXPECT_TRUE(parse_content_range("Bytes 0-0/1"));
  EXPECT_FALSE(parse_content_range("bytes 0-0/*")->total);
  const auto none = parse_content_range("bytes */0");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_bytes());
  EXPECT_EQ(none->total, 0U);
}

TEST(ContentRange, IsRefusedIfItContradictsItself) {
  for (const char* text :
       {"", "bytes", "bytes ", "5-9/100", "bytes 9-5/100", "bytes 5-100/100", "bytes 5-9",
        "bytes */*", "bytes -9/100", "bytes 5-/100", "bytes a-9/100", "bytes 5-9/1x",
        "bytes 5-9/-1", "items 5-9/10", "bytes 5-9,11-12/100",
        "bytes 99999999999999999999-99999999999999999999/1"}) {
    EXPECT_FALSE(parse_content_range(text)) << text;
  }
}

TEST(Answer, IsCollectedFromItsLines) {
  Answer answer;
  for (const char* line :
       {"HTTP/1.1 100 Continue\r\n", "ETag: \"no\"\r\n", "\r\n", "HTTP/1.1 206 Partial Content\r\n",
        "content-RANGE: bytes 0-9/10\r\n", "Content-Length:10\r\n", "ETag:  \"a b\" \r\n",
        "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n", "Location: /x\r\n",
        "Retry-After: 3\r\n", "Content-Encoding: gzip\r\n", "no colon\r\n", "\r\n"}) {
    answer.take_line(line);
  }
  EXPECT_EQ(answer.status, 206);
  ASSERT_TRUE(answer.range);
  EXPECT_EQ(answer.range->total, 10U);
  EXPECT_EQ(answer.length_bytes, 10U);
  EXPECT_EQ(answer.etag, "\"a b\"");
  EXPECT_TRUE(answer.has_strong_etag());
  EXPECT_EQ(answer.modified, "Thu, 01 Jan 2026 00:00:00 GMT");
  EXPECT_EQ(answer.location, "/x");
  EXPECT_EQ(answer.retry_after_s, 3U);
  EXPECT_TRUE(answer.encoded);
  answer.take_line("HTTP/1.1 200\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.range || answer.encoded || !answer.etag.empty()) << "of the one before";
}

TEST(Answer, KnowsAWeakVersionAndABadRange) {
  Answer answer;
  answer.take_line("ETag: W/\"a\"");
  EXPECT_FALSE(answer.has_strong_etag());
  answer.take_line("Content-Range: bytes 9-1/10");
  EXPECT_TRUE(answer.bad_range);
  EXPECT_FALSE(answer.range);
  answer.take_line("Content-Encoding: identity");
  EXPECT_FALSE(answer.encoded);
}

}  // namespace
}  // namespace lowtide::answer_test

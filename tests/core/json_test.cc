#include "lowtide/command/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace lowtide::json_test {
namespace {

template <typename T>
std::string json_of(const T& value) {
  JsonWriter json;
  json.value(value);
  return json.text();
}

TEST(Json, WritesObjectsAndArrays) {
  JsonWriter json;
  json.begin_object().field("a", 1).field("b", true).key("c").begin_array();
  json.value(1).value("x").null().begin_object().end_object().begin_array().end_array();
  json.end_array().field("d", std::vector<std::string>{"y", "z"}).end_object();
  EXPECT_EQ(json.text(), R"({"a":1,"b":true,"c":[1,"x",null,{},[]],"d":["y","z"]})");
}

TEST(Json, WritesNumbersExactly) {
  EXPECT_EQ(json_of(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(json_of(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(json_of(0.1), "0.1");
  EXPECT_EQ(json_of(1e300), "1e+300");
  EXPECT_EQ(json_of(std::nan("")), "null");
  EXPECT_EQ(json_of(-HUGE_VAL), "null");
  EXPECT_EQ(json_of(std::optional<int>()), "null");
  EXPECT_EQ(json_of(std::optional<int>(3)), "3");
}

TEST(Json, EscapesTexts) {
  EXPECT_EQ(json_of("a\"b\\c\n\t\x01\x7f/"), "\"a\\\"b\\\\c\\n\\u0009\\u0001\\u007f/\"");
  EXPECT_EQ(json_of(std::string("\0", 1)), "\"\\u0000\"");
  EXPECT_EQ(json_of("h\xc3\xb6he \xf0\x9f\x98\x80"), "\"h\xc3\xb6he \xf0\x9f\x98\x80\"");
}

TEST(Json, EscapesWhatNobodySees) {
  EXPECT_EQ(json_of("a\u009bb"), "\"a\\u009bb\"");
  EXPECT_EQ(json_of("a\u202ec"), "\"a\\u202ec\"");
  EXPECT_EQ(json_of("\u2028\u2029\u2066\u200b\ufeff"), "\"\\u2028\\u2029\\u2066\\u200b\\ufeff\"");
  EXPECT_EQ(json_of("\U000e0041"), "\"\\udb40\\udc41\"");
}

TEST(Json, ReplacesWhatIsNoUtf8) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(json_of("\xff"), "\"" + mark + "\"");
  EXPECT_EQ(json_of("a\xc3"), "\"a" + mark + "\"");                      // cut
  EXPECT_EQ(json_of("\xc0\xaf"), "\"" + mark + mark + "\"");             // overlong
  EXPECT_EQ(json_of("\xe0\x80\xaf"), "\"" + mark + mark + mark + "\"");  // overlong
  EXPECT_EQ(json_of("\xed\xa0\x80"), "\"" + mark + mark + mark + "\"");  // a surrogate
  EXPECT_EQ(json_of("\xf4\x90\x80\x80z"), "\"" + mark + mark + mark + mark + "z\"");
}

TEST(Json, RefusesWhatIsNone) {
  EXPECT_THROW(JsonWriter().begin_object().value(1), std::logic_error);
  EXPECT_THROW(JsonWriter().begin_array().key("a"), std::logic_error);
  EXPECT_THROW(JsonWriter().begin_array().end_object(), std::logic_error);
  EXPECT_THROW(JsonWriter().begin_object().key("a").end_object(), std::logic_error);
  EXPECT_THROW(JsonWriter().value(1).value(2), std::logic_error);
  EXPECT_THROW(JsonWriter().end_array(), std::logic_error);
  JsonWriter open;
  open.begin_array();
  EXPECT_THROW((void)open.text(), std::logic_error);
}

}  // namespace
}  // namespace lowtide::json_test

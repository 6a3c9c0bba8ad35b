#include "format/json_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::json_reader_test {
namespace {

std::string string_of(const std::string& text) {
  JsonReader json(text);
  std::string found = json.string();
  json.end();
  return found;
}

std::string string_error(const std::string& text) {
  return thrown<FormatError>([&] { return string_of(text); });
}

std::string skip_error(const std::string& text) {
  return thrown<FormatError>([&] {
    JsonReader json(text);
    json.skip();
    json.end();
  });
}

TEST(JsonReader, ReadsAnObjectInItsOrder) {
  JsonReader json(R"( { "b" : [1, 2,18446744073709551615] , "a":"x", "c":{}, "d":[] } )");
  std::string key, keys;
  std::vector<std::uint64_t> numbers;
  json.begin_object();
  while (json.next_key(&key)) {
    keys += key;
    if (key == "b") {
      json.begin_array();
      while (json.next_item()) numbers.push_back(json.whole_number());
    } else if (key == "a") {
      EXPECT_EQ(json.string(), "x");
    } else {
      json.skip();
    }
  }
  json.end();
  EXPECT_EQ(keys, "bacd");
  EXPECT_EQ(numbers, (std::vector<std::uint64_t>{1, 2, UINT64_MAX}));
}

TEST(JsonReader, DecodesEveryEscape) {
  EXPECT_EQ(string_of(R"("\"\\\/\b\f\n\r\t\u00e4\u20AC\ud83d\ude00é")"), "\"\\/\b\f\n\r\tä€😀é");
  EXPECT_EQ(string_of(R"("\u0000")"), std::string(1, '\0'));
}

TEST(JsonReader, RefusesStringsThatAreNotUtf8) {
  for (const char* const text :
       {"\"\xff\"", "\"\xc3\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf5\x80\x80\x80\""}) {
    EXPECT_NE(string_error(text).find("expected UTF-8 at byte 1 of the JSON"), std::string::npos)
        << text;
  }
}

TEST(JsonReader, RefusesBrokenStrings) {
  EXPECT_NE(string_error("\"a").find("expected the closing quote at byte 2"), std::string::npos);
  EXPECT_NE(string_error("\"a\nb\"").find("expected no control character"), std::string::npos);
  EXPECT_NE(string_error(R"("\x41")").find("expected an escape"), std::string::npos);
  EXPECT_NE(string_error(R"("\u12")").find("four hexadecimal digits"), std::string::npos);
  EXPECT_NE(string_error(R"("\u-123")").find("four hexadecimal digits"), std::string::npos);
  EXPECT_NE(string_error(R"("\ud800")").find("second half"), std::string::npos);
  EXPECT_NE(string_error(R"("\ud800\u0041")").find("second half"), std::string::npos);
  EXPECT_NE(string_error(R"("\udc00")").find("first half"), std::string::npos);
  EXPECT_NE(string_error("\"\\").find("expected an escape"), std::string::npos);
}

TEST(JsonReader, SkipsEveryValue) {
  for (const char* const text : {"true", "false", "null", "0", "-0.5e+10", "1E5", "12", "[]", "{}",
                                 R"({"a":[1,{"b":null}],"c":"x"})", "  [1 , 2]  "}) {
    EXPECT_EQ(skip_error(text), "no error") << text;
  }
}

TEST(JsonReader, RefusesWhatIsNotJson) {
  for (const char* const text :
       {"",         "[1,]", "[,1]", "[1 2]", "[1", "{\"a\":1,}", "{\"a\"}",   "{\"a\":}", "{a:1}",
        "{1:2}",    "tru",  "01",   "1.",    ".5", "-",          "1e",        "+1",       "NaN",
        "Infinity", "'a'",  "[1]]", "1 2",   "//", "[1}",        "{\"a\":1]", "\"a\" b"}) {
    EXPECT_NE(skip_error(text).find("expected "), std::string::npos) << text;
    EXPECT_NE(skip_error(text).find(" of the JSON, found "), std::string::npos) << text;
  }
  EXPECT_NE(skip_error(std::string("1\0", 2)), "no error");
}

TEST(JsonReader, AcceptsOnlyWholeNumbersWhereTheyAreExpected) {
  for (const char* const text :
       {"-1", "1.0", "1e3", "18446744073709551616", "00", "\"1\"", "true"}) {
    EXPECT_NE(thrown<FormatError>([&] {
                return std::to_string(JsonReader(text).whole_number());
              }).find("expected an integer from 0 to 2^64 - 1 at byte 0"),
              std::string::npos)
        << text;
  }
}

TEST(JsonReader, LimitsTheDepth) {
  EXPECT_EQ(skip_error(std::string(32, '[') + std::string(32, ']')), "no error");
  EXPECT_NE(skip_error(std::string(33, '[')).find("at most 32 levels"), std::string::npos);
  EXPECT_NE(skip_error(std::string(1'000'000, '[')).find("at byte 32"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(skip_error(objects).find("at most 32 levels"), std::string::npos);
}

}  // namespace
}  // namespace lowtide::json_reader_test

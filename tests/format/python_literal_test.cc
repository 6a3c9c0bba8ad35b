#include "format/python_literal.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::python_literal_test {
namespace {

using Kind = Literal::Kind;

Literal parse(std::string_view text) {
  return parse_literal(text, Dialect::python3);
}

std::string error_of(std::string_view text, Dialect dialect = Dialect::python3) {
  return thrown<FormatError>([&] { const Literal literal = parse_literal(text, dialect); });
}

TEST(PythonLiteral, ReadsAtoms) {
  EXPECT_EQ(parse("None").kind, Kind::none);
  EXPECT_EQ(parse("True").kind, Kind::boolean);
  EXPECT_TRUE(parse("True").truth);
  EXPECT_FALSE(parse("False").truth);
  EXPECT_EQ(parse(" \n42\t").integer, 42);
  EXPECT_EQ(parse("-42").integer, -42);
  EXPECT_EQ(parse("9223372036854775807").integer, INT64_MAX);
  EXPECT_EQ(parse("'a'").string, "a");
  EXPECT_EQ(parse("\"a'b\"").string, "a'b");
  EXPECT_EQ(parse("u'a'").string, "a");
}

TEST(PythonLiteral, KeepsAnIntegerBeyond64BitsApart) {
  const Literal literal = parse("9223372036854775808");
  EXPECT_EQ(literal.kind, Kind::integer);
  EXPECT_FALSE(literal.integer.has_value());
  EXPECT_EQ(literal.source, "9223372036854775808");
}

TEST(PythonLiteral, ReadsNestedContainers) {
  const Literal literal = parse("{'a': [1, (2, 3,), ()], \"b\": {},}");
  ASSERT_EQ(literal.kind, Kind::dict);
  ASSERT_EQ(literal.items.size(), 4u);
  EXPECT_EQ(literal.items[0].string, "a");
  const Literal& list = literal.items[1];
  ASSERT_EQ(list.kind, Kind::list);
  ASSERT_EQ(list.items.size(), 3u);
  EXPECT_EQ(list.items[1].kind, Kind::tuple);
  EXPECT_EQ(list.items[1].items[1].integer, 3);
  EXPECT_EQ(list.items[1].source, "(2, 3,)");
  EXPECT_EQ(list.items[2].kind, Kind::tuple);
  EXPECT_TRUE(list.items[2].items.empty());
  EXPECT_EQ(literal.items[3].kind, Kind::dict);
}

TEST(PythonLiteral, MakesATupleByItsComma) {
  EXPECT_EQ(parse("(3)").kind, Kind::integer);
  EXPECT_EQ(parse("((3))").integer, 3);
  EXPECT_EQ(parse("(3,)").kind, Kind::tuple);
}

TEST(PythonLiteral, ReadsEscapes) {
  EXPECT_EQ(parse(R"('\\\'\"\n\r\t\a\b\f\v')").string, "\\'\"\n\r\t\a\b\f\v");
  EXPECT_EQ(parse(R"('\x41\xe9\u9ad8\U0001f600')").string, "A\u00e9\u9ad8\U0001f600");
  EXPECT_EQ(parse(R"('a\x00b')").string, std::string("a\0b", 3));
}

TEST(PythonLiteral, ReadsLatin1AndUtf8EachInItsDialect) {
  EXPECT_EQ(parse_literal("'\xe9'", Dialect::python2).string, "\u00e9");
  EXPECT_EQ(parse_literal("'\xc3\xa9'", Dialect::python2).string, "\u00c3\u00a9");
  EXPECT_EQ(parse_literal("'\xc3\xa9'", Dialect::python3).string, "\u00e9");
}

TEST(PythonLiteral, RefusesBrokenUtf8) {
  for (const char* text :
       {"'\xe9'", "'\x80'", "'\xc0\xaf'", "'\xe0\x80\xaf'", "'\xed\xa0\x80'", "'\xf0\x80\x80\xaf'",
        "'\xf4\x90\x80\x80'", "'\xf8\x88\x80\x80\x80'", "'\xe9\xab", "'\xff'"}) {
    EXPECT_NE(error_of(text).find("expected UTF-8 at byte 1"), std::string::npos) << error_of(text);
  }
  EXPECT_EQ(parse("'\xf4\x8f\xbf\xbf\xed\x9f\xbf'").string.size(), 7u);
}

TEST(PythonLiteral, ReadsPython2LongsOnlyInTheirDialect) {
  EXPECT_EQ(parse_literal("(3L, 4)", Dialect::python2).items[0].integer, 3);
  EXPECT_NE(error_of("(3L,)"), "no error");
  EXPECT_NE(error_of("3l", Dialect::python2), "no error");
  EXPECT_NE(error_of("3LL", Dialect::python2), "no error");
}

TEST(PythonLiteral, NamesTheByteTheExpectedAndTheFound) {
  EXPECT_EQ(error_of("{'a' 1}"), "expected ':' at byte 5 of the Python literal, found '1}'");
  EXPECT_EQ(error_of("[1 2]"), "expected ',' or ']' at byte 3 of the Python literal, found '2]'");
  EXPECT_EQ(error_of("[1"),
            "expected ',' or ']' at byte 2 of the Python literal, found the end of the text");
  EXPECT_EQ(error_of("1 x"),
            "expected the end of the text at byte 2 of the Python literal, found 'x'");
  EXPECT_EQ(error_of("'ab"),
            "expected the closing ' at byte 3 of the Python literal, found the end of the text");
}

TEST(PythonLiteral, RefusesWhatIsNotALiteral) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[",
                           "(",
                           "(,)",
                           "[,]",
                           "[1,,2]",
                           "{1}",
                           "{1:}",
                           "{'a': 1",
                           "(1]",
                           "x",
                           "f()",
                           "1.5",
                           "1e3",
                           "0x10",
                           "1_000",
                           "007",
                           "--1",
                           "-",
                           "+1",
                           "-x",
                           "true",
                           "Truex",
                           "nan",
                           "b'x'",
                           "r'x'",
                           "'''x'''",
                           "'a' 'b'",
                           "'a\nb'",
                           "'\\q'",
                           "'\\x4'",
                           "'\\xgg'",
                           "'\\ud800'",
                           "'\\U00110000'",
                           "'\\",
                           "'\\x+1'",
                           "1 # c",
                           "__import__('os')",
                           "[x for x in ()]",
                           "u",
                           "u1"}) {
    EXPECT_NE(error_of(text), "no error") << text;
  }
  EXPECT_NE(error_of(std::string_view("1\0", 2)), "no error");
  EXPECT_NE(error_of(std::string_view("'a\0'", 4)), "no error");
}

TEST(PythonLiteral, NestsTo32AndNoDeeper) {
  const std::string open32(32, '[');
  EXPECT_EQ(parse(open32 + "1" + std::string(32, ']')).kind, Kind::list);
  EXPECT_NE(error_of(open32 + "[1").find("at most 32 levels"), std::string::npos);
  EXPECT_NE(error_of(std::string(1 << 20, '(')).find("at most 32 levels"), std::string::npos);
  EXPECT_NE(error_of(std::string(1 << 20, '{')).find("at most 32 levels"), std::string::npos);
}

TEST(PythonLiteral, LimitsTheNumberOfValues) {
  const auto list_of = [](std::size_t count) {
    std::string text = "[";
    for (std::size_t i = 0; i < count; ++i) text += "1,";
    return text + "]";
  };
  EXPECT_EQ(parse(list_of(kMaxLiteralNodes - 1)).items.size(), kMaxLiteralNodes - 1);
  EXPECT_NE(error_of(list_of(kMaxLiteralNodes)).find("at most 65536 values"), std::string::npos);
}

}  // namespace
}  // namespace lowtide::python_literal_test

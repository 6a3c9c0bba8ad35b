#include "core/quote.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace lowtide {
namespace {

TEST(PythonRepr, ChoosesQuotesAsPythonDoes) {
  EXPECT_EQ(python_repr("x"), "'x'");
  EXPECT_EQ(python_repr("it's"), "\"it's\"");
  EXPECT_EQ(python_repr("\"it's\""), "'\"it\\'s\"'");
}

TEST(PythonRepr, EscapesControlCharactersAndKeepsUtf8) {
  EXPECT_EQ(python_repr(std::string_view("a\n\r\t\\\0\x7f", 7)), "'a\\n\\r\\t\\\\\\x00\\x7f'");
  EXPECT_EQ(python_repr("h\u00f6he"), "'h\u00f6he'");
}

TEST(Excerpt, IsAsciiAndShort) {
  EXPECT_EQ(excerpt("\x93NUMPY"), "'\\x93NUMPY'");
  EXPECT_EQ(excerpt(std::string(60, 'a')), "'" + std::string(60, 'a') + "'");
  EXPECT_EQ(excerpt(std::string(61, 'a')), "'" + std::string(60, 'a') + "'...");
}

TEST(Shown, LeavesTextAloneAndQuotesTheRest) {
  EXPECT_EQ(shown("/data/train set.bin"), "/data/train set.bin");
  EXPECT_EQ(shown("h\xc3\xb6he"), "h\xc3\xb6he");
  EXPECT_EQ(shown("a\nb"), "'a\\nb'");
  EXPECT_EQ(shown("h\xc3\xb6he \xff"), "'h\\xc3\\xb6he \\xff'");
  EXPECT_EQ(shown(""), "");
}

}  // namespace
}  // namespace lowtide

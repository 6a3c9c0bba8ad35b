#include "core/quote.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lowtide/command/terminal.h"

namespace lowtide::quote_test {
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
  EXPECT_EQ(shown("a\u009b1m"), "'a\\xc2\\x9b1m'");
  EXPECT_EQ(shown("a\u202egpj"), "'a\\xe2\\x80\\xaegpj'");
  EXPECT_EQ(shown(""), "");
}

TEST(VisibleText, EscapesOnlyWhatIsHidden) {
  EXPECT_EQ(visible_text("h\u00f6he \u65e5\u672c"), "h\u00f6he \u65e5\u672c");
  EXPECT_EQ(visible_text("a\n\x1b[31m\xff"), "a\\n\\x1b[31m\\xff");
  EXPECT_EQ(visible_text("\u00f6\u202e\u009b"), "\u00f6\\xe2\\x80\\xae\\xc2\\x9b");
  EXPECT_EQ(visible_text("h\u00f6", true), "h\\xc3\\xb6");
}

}  // namespace
}  // namespace lowtide::quote_test

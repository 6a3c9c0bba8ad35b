// The main of every test program. A program holds the tests of a room; words after its name choose
// files of it: "format_tests npy" runs the tests of tests/format/npy_test.cc only.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

// Calls visit(full name, file) for every test.
template <class Visit>
void for_each_test(Visit visit) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      visit(std::string(suite.name()) + "." + test.name(), std::string_view(test.file()));
    }
  }
}

// A filter of the tests in tests/<room>/<file>_test.cc; empty where there are none.
std::string filter_of(std::string_view file) {
  const std::string end = "/" + std::string(file) + "_test.cc";
  std::string filter;
  for_each_test([&](const std::string& name, std::string_view path) {
    if (path.ends_with(end)) filter += (filter.empty() ? "" : ":") + name;
  });
  return filter;
}

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(2);
}

}  // namespace

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  std::string chosen;
  for (int i = 1; i < count; ++i) {
    const std::string filter = filter_of(words[i]);
    if (filter.empty()) refuse("no tests of " + std::string(words[i]) + "_test.cc in this program");
    chosen += (chosen.empty() ? "" : ":") + filter;
  }
  if (!chosen.empty()) {
    const std::string given = testing::GTEST_FLAG(filter);  // may leave out more: "-name"
    if (given != "*" && !given.starts_with('-')) refuse("choose by file or by filter, not by both");
    testing::GTEST_FLAG(filter) = chosen + (given == "*" ? "" : given);
  }
  return RUN_ALL_TESTS();
}

#include "lowtide/command/demo.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lowtide/error.h"
#include "os/temp_folder.h"
#include "support/thrown.h"

namespace lowtide::demo_test {
namespace {

constexpr std::uint64_t kRows = 10'000;
constexpr double kPlenty_s = 600;

class DemoTest : public testing::Test {
 protected:
  DemoTest() { write_demo_matrix(path_, kRows * kDemoRowBytes + 7); }

  TempFolder folder_;
  std::string path_ = folder_.path() + "/matrix";
};

TEST_F(DemoTest, EveryMethodReadsEveryRowTwiceAndTellsWhileItHoldsThem) {
  for (const DemoMethod& method : demo_methods()) {
    int ends = 0;
    const DemoRate rate = read_demo_matrix(path_, method.word, kPlenty_s, [&] { ++ends; });
    EXPECT_EQ(rate.rows, 2 * kRows) << method.word;
    EXPECT_GT(rate.seconds, 0) << method.word;
    EXPECT_EQ(ends, 1) << method.word;
  }
}

TEST_F(DemoTest, NoTimeIsAFewRows) {
  for (const DemoMethod& method : demo_methods()) {
    EXPECT_LT(read_demo_matrix(path_, method.word, 1e-9).rows, kRows) << method.word;
  }
}

TEST_F(DemoTest, AWrongRowIsNoticedByEveryMethod) {
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(77 * kDemoRowBytes)).put(1);
  }
  for (const DemoMethod& method : demo_methods()) {
    EXPECT_THROW((void)read_demo_matrix(path_, method.word, kPlenty_s), FormatError) << method.word;
  }
}

TEST_F(DemoTest, TheMatrixHasWholeRowsAndProgressReachesItsEnd) {
  EXPECT_EQ(std::filesystem::file_size(path_), kRows * kDemoRowBytes);
  std::uint64_t done = 0;
  write_demo_matrix(folder_.path() + "/one", 1, [&](std::uint64_t now, std::uint64_t all) {
    done = now;
    EXPECT_EQ(all, kDemoRowBytes);
  });
  EXPECT_EQ(done, kDemoRowBytes);
}

TEST_F(DemoTest, FoldersAreNewAndTheirParentMustBeThere) {
  const std::string one = make_demo_folder(folder_.path());
  EXPECT_NE(one, make_demo_folder(folder_.path()));
  EXPECT_TRUE(std::filesystem::is_directory(one));
  EXPECT_EQ(caught<IoError>([&] { (void)make_demo_folder(folder_.path() + "/none"); }).value().err,
            ENOENT);
  EXPECT_THROW((void)read_demo_matrix(path_, "telepathy", 1), std::invalid_argument);
}

}  // namespace
}  // namespace lowtide::demo_test

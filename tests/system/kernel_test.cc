#include "system/kernel.h"

#include <gtest/gtest.h>

#include <string>

#include "os/temp_folder.h"

namespace lowtide::kernel_test {
namespace {

class KernelTest : public testing::Test {
 protected:
  KernelTest() : root_{folder_ / "proc", folder_ / "cgroup", folder_ / "sys"} {}

  TempFolder folder_;
  SystemRoot root_;
};

TEST_F(KernelTest, SaysNothingWhereNothingIsTold) {
  EXPECT_FALSE(kernel_release(root_));
  EXPECT_FALSE(io_uring_disabled(root_));
  EXPECT_FALSE(calls_are_filtered(root_));
  EXPECT_FALSE(huge_page_mode(root_));
  EXPECT_FALSE(process_limit("Max open files", root_));
}

TEST_F(KernelTest, ReadsReleaseAndSysctl) {
  folder_.write("proc/sys/kernel/osrelease", "6.18.1-test\n");
  folder_.write("proc/sys/kernel/io_uring_disabled", "2\n");
  EXPECT_EQ(kernel_release(root_), "6.18.1-test");
  EXPECT_EQ(io_uring_disabled(root_), 2u);
  folder_.write("proc/sys/kernel/osrelease", "\n");
  EXPECT_FALSE(kernel_release(root_));
}

TEST_F(KernelTest, SeesAFilterOfSystemCalls) {
  folder_.write("proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n");
  EXPECT_EQ(calls_are_filtered(root_), true);
  folder_.write("proc/self/status", "Name:\tx\nSeccomp:\t0\n");
  EXPECT_EQ(calls_are_filtered(root_), false);
  folder_.write("proc/self/status", "Name:\tx\n");
  EXPECT_FALSE(calls_are_filtered(root_));
}

TEST_F(KernelTest, TakesTheWordInBrackets) {
  folder_.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  EXPECT_EQ(huge_page_mode(root_), "madvise");
  for (const char* nonsense : {"", "always\n", "]always[", "[always"}) {
    folder_.write("sys/kernel/mm/transparent_hugepage/enabled", nonsense);
    EXPECT_FALSE(huge_page_mode(root_)) << nonsense;
  }
}

TEST_F(KernelTest, ReadsLimitsOfTheProcess) {
  folder_.write("proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units     \n"
                "Max locked memory         8388608              unlimited            bytes     \n"
                "Max open files            1024                 524288               files     \n"
                "Max odd\n");
  EXPECT_EQ(process_limit("Max open files", root_)->soft, 1024u);
  EXPECT_EQ(process_limit("Max open files", root_)->hard, 524288u);
  EXPECT_EQ(process_limit("Max locked memory", root_)->soft, 8388608u);
  EXPECT_FALSE(process_limit("Max locked memory", root_)->hard);
  EXPECT_FALSE(process_limit("Max odd", root_));
  EXPECT_FALSE(process_limit("Max nothing", root_));
}

TEST(Kernel, TellsOfTheRealSystem) {
  const auto release = kernel_release();
  if (!release) GTEST_SKIP() << "/proc is hidden";
  EXPECT_GE(release->size(), 3u);
  ASSERT_TRUE(process_limit("Max open files"));
  EXPECT_GT(process_limit("Max open files")->soft.value_or(1), 0u);
}

}  // namespace
}  // namespace lowtide::kernel_test

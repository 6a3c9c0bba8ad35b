#include "os/sys.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace lowtide::sys_test {
namespace {

int refuse_close(int) {
  errno = EIO;
  return -1;
}

TEST(Sys, ReplacesOneCallForAsLongAsTheFaultLives) {
  const auto real = sys::table.close;
  {
    const sys::Fault fault(sys::table.close, &refuse_close);
    EXPECT_EQ(fault.real(), real);
    EXPECT_EQ(sys::table.close(-1), -1);
    EXPECT_EQ(errno, EIO);
  }
  EXPECT_EQ(sys::table.close, real);
  EXPECT_EQ(sys::table.close(-1), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(Sys, GivesTheErrnoOfFadviseAsOtherCallsDo) {
  errno = 0;
  EXPECT_EQ(sys::table.fadvise(-1, 0, 0, POSIX_FADV_NORMAL), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(Sys, GivesTheErrnoOfCachestat) {
  const sys::CachestatRange range{0, 0};
  sys::Cachestat counts{};
  EXPECT_EQ(sys::table.cachestat(-1, &range, &counts), -1);
  EXPECT_TRUE(errno == EBADF || errno == ENOSYS || errno == EPERM) << errno;
}

}  // namespace
}  // namespace lowtide::sys_test

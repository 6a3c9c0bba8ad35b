#include "lowtide/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace lowtide {
namespace {

TEST(IoError, NamesOperationPathOffsetAndReason) {
  const IoError error(EIO, "pread", "/data/x.npy", 4096);
  EXPECT_STREQ(error.what(), "pread /data/x.npy at byte 4096: Input/output error");
  EXPECT_EQ(error.err, EIO);
  EXPECT_EQ(error.op, "pread");
  EXPECT_EQ(error.path, "/data/x.npy");
  EXPECT_EQ(error.offset_bytes, 4096u);
}

TEST(IoError, LeavesOutWhatIsNotKnown) {
  EXPECT_STREQ(IoError(ENOENT, "open", "a.bin").what(), "open a.bin: No such file or directory");
  EXPECT_STREQ(IoError(EPERM, "io_uring_setup", "").what(),
               "io_uring_setup: Operation not permitted");
}

TEST(IoError, EndsWithTheHint) {
  EXPECT_STREQ(IoError(EMFILE, "open", "a", std::nullopt, "raise ulimit -n").what(),
               "open a: Too many open files; raise ulimit -n");
}

TEST(IoError, HasAnErrnoEvenWhenNoneWasGiven) {
  EXPECT_EQ(IoError(0, "pread", "a").err, EIO);
}

}  // namespace
}  // namespace lowtide

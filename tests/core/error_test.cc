#include "lowtide/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace lowtide::error_test {
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

TEST(IoError, HasAReasonForWhoeverNamesThePathBesideIt) {
  EXPECT_EQ(IoError(ENOENT, "open", "a.bin").reason, "No such file or directory");
  EXPECT_EQ(IoError(EMFILE, "open", "a", std::nullopt, "raise ulimit -n").reason,
            "Too many open files; raise ulimit -n");
  EXPECT_EQ(IoError(EIO, "pread", "/data/x.npy", 4096).reason,
            "pread at byte 4096: Input/output error");
  EXPECT_EQ(IoError(EPERM, "io_uring_setup", "").reason, "io_uring_setup: Operation not permitted");
}

TEST(NoMemory, SaysHowMuchWasAskedForAndWhatFor) {
  const NoMemory error(256 << 20, "a batch");
  EXPECT_NE(std::string(error.what()).find("256 MiB for a batch"), std::string::npos);
}

}  // namespace
}  // namespace lowtide::error_test

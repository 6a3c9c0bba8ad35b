// The O_DIRECT twin of a File.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checked.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/sys.h"
#include "os/temp_folder.h"

namespace lowtide::file_direct_test {
namespace {

using OpenCall = int (*)(const char*, int);
using StatxCall = int (*)(int, const char*, int, unsigned, struct statx*);
using PreadCall = ssize_t (*)(int, void*, std::size_t, off_t);

std::string direct_text(const File& file, std::uint64_t offset_bytes, std::size_t size_bytes) {
  const Memory memory(size_bytes);
  const ReadResult result = file.read_direct(offset_bytes, memory.bytes());
  EXPECT_EQ(result.err, 0);
  return {reinterpret_cast<const char*>(memory.data()), result.placed_bytes};
}

#define SKIP_WITHOUT_DIRECT(file) \
  if ((file).direct_fd() < 0) GTEST_SKIP() << "this file system has no O_DIRECT"

TEST(DirectFile, ReadsTheSameBytesUpToTheUnalignedEnd) {
  const TempFolder folder;
  const std::string bytes = pattern(3 * 4096 + 904);
  const File file(folder.write("a", bytes));
  SKIP_WITHOUT_DIRECT(file);
  EXPECT_EQ(direct_text(file, 0, 8192), bytes.substr(0, 8192));
  EXPECT_EQ(direct_text(file, 8192, 8192), bytes.substr(8192));
  EXPECT_EQ(direct_text(file, 16384, 4096), "");
}

TEST(DirectFile, OpensTheTwinOnceAndNotBefore) {
  static int opened;
  static OpenCall real;
  opened = 0;
  real = sys::table.open;
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  const sys::Fault fault(
      sys::table.open, +[](const char* path, int flags) { return ++opened, real(path, flags); });
  SKIP_WITHOUT_DIRECT(file);
  EXPECT_EQ(file.direct_fd(), file.direct_fd());
  EXPECT_EQ(opened, 1);
  EXPECT_NE(::fcntl(file.direct_fd(), F_GETFL) & O_DIRECT, 0);
  EXPECT_NE(::fcntl(file.direct_fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(DirectFile, IsTheSameInodeAfterARename) {
  const TempFolder folder;
  const std::string bytes = pattern(4096, 1);
  const File file(folder.write("a", bytes));
  std::filesystem::rename(folder.write("b", pattern(4096, 2)), folder / "a");
  SKIP_WITHOUT_DIRECT(file);
  EXPECT_EQ(direct_text(file, 0, 4096), bytes);
}

// Fails every open below /proc, as where it is not mounted.
class WithoutProc {
 public:
  WithoutProc() : fault_(sys::table.open, &open_outside) { real_ = fault_.real(); }

 private:
  static int open_outside(const char* path, int flags) {
    if (std::string_view(path).starts_with("/proc/")) {
      errno = ENOENT;
      return -1;
    }
    return real_(path, flags);
  }
  static inline OpenCall real_;
  sys::Fault<OpenCall> fault_;
};

TEST(DirectFile, OpensByPathWhereProcIsNotThere) {
  const TempFolder folder;
  const std::string bytes = pattern(4096);
  const File file(folder.write("a", bytes));
  {
    const File other(folder / "a");
    SKIP_WITHOUT_DIRECT(other);
  }
  const WithoutProc fault;
  ASSERT_GE(file.direct_fd(), 0);
  EXPECT_EQ(::fcntl(file.direct_fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(direct_text(file, 0, 4096), bytes);
}

TEST(DirectFile, NeverTakesAnotherInodeByPath) {
  const TempFolder folder;
  const File file(folder.write("a", pattern(4096, 1)));
  std::filesystem::rename(folder.write("b", pattern(4096, 2)), folder / "a");
  const WithoutProc fault;
  EXPECT_EQ(file.direct_fd(), -1);
  std::byte one;
  EXPECT_EQ(file.read_direct(0, {&one, 1}).err, EINVAL);
}

TEST(DirectFile, IsAbsentWhereTheFileSystemRefuses) {
  static int refused;
  static OpenCall real;
  refused = 0;
  real = sys::table.open;
  const TempFolder folder;
  const sys::Fault fault(
      sys::table.open, +[](const char* path, int flags) {
        if ((flags & O_DIRECT) == 0) return real(path, flags);
        ++refused;
        errno = EINVAL;
        return -1;
      });
  const File file(folder.write("a", "x"));
  EXPECT_EQ(file.direct_fd(), -1);
  EXPECT_EQ(file.direct_fd(), -1);
  EXPECT_EQ(refused, 1);
}

TEST(DirectFile, AsksAgainWhenDescriptorsHadRunOut) {
  static bool out_of_descriptors;
  static OpenCall real;
  real = sys::table.open;
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  {
    const File other(folder / "a");
    SKIP_WITHOUT_DIRECT(other);
  }
  const sys::Fault fault(
      sys::table.open, +[](const char* path, int flags) {
        if (!out_of_descriptors) return real(path, flags);
        errno = EMFILE;
        return -1;
      });
  out_of_descriptors = true;
  EXPECT_EQ(file.direct_fd(), -1);
  out_of_descriptors = false;
  EXPECT_GE(file.direct_fd(), 0);
}

// statx with an answer about direct I/O of our own.
struct Told {
  bool known = true;
  std::uint32_t memory_bytes = 0;
  std::uint32_t offset_bytes = 0;
};
std::optional<DirectAlignment> alignment_when(const Told& answer) {
  static Told told;
  static StatxCall real;
  told = answer;
  real = sys::table.statx;
  const TempFolder folder;
  const std::string path = folder.write("a", "x");
  const sys::Fault fault(
      sys::table.statx,
      +[](int dirfd, const char* name, int flags, unsigned mask, struct statx* out) {
        const int done = real(dirfd, name, flags, mask, out);
        out->stx_mask &= ~0x2000U;
        if (told.known) out->stx_mask |= 0x2000U;
        std::memcpy(reinterpret_cast<char*>(out) + 0x98, &told.memory_bytes, 4);
        std::memcpy(reinterpret_cast<char*>(out) + 0x9c, &told.offset_bytes, 4);
        return done;
      });
  const File file(path);
  if (!file.direct_alignment()) {
    EXPECT_EQ(file.direct_fd(), -1);
  }
  return file.direct_alignment();
}

TEST(DirectFile, TakesTheAlignmentThatTheKernelTells) {
  const auto told = alignment_when({true, 4, 512});
  ASSERT_TRUE(told);
  EXPECT_EQ(told->memory_bytes, 4u);
  EXPECT_EQ(told->offset_bytes, 512u);
}

TEST(DirectFile, Takes4096WhereTheKernelDoesNotTellOrTellsNonsense) {
  for (const Told& answer : {Told{false, 0, 0}, Told{true, 3, 512}, Told{true, 512, 1000}}) {
    const auto alignment = alignment_when(answer);
    ASSERT_TRUE(alignment);
    EXPECT_EQ(alignment->memory_bytes, 4096u);
    EXPECT_EQ(alignment->offset_bytes, 4096u);
  }
}

TEST(DirectFile, HasNoTwinWhereTheKernelTellsThatThereIsNone) {
  EXPECT_FALSE(alignment_when({true, 0, 0}));
}

// Reads by the twin that stop after `most` bytes; others pass.
class ShortDirectReads {
 public:
  explicit ShortDirectReads(std::size_t most) : fault_(sys::table.pread, &read_short) {
    most_ = most;
    real_ = fault_.real();
  }

 private:
  static ssize_t read_short(int fd, void* into, std::size_t size, off_t offset) {
    if ((::fcntl(fd, F_GETFL) & O_DIRECT) == 0) return real_(fd, into, size, offset);
    const Memory whole(size);
    const ssize_t got = real_(fd, whole.data(), size, offset);
    const ssize_t given = std::min(got, static_cast<ssize_t>(most_));
    if (given > 0) std::memcpy(into, whole.data(), static_cast<std::size_t>(given));
    return given;
  }
  static inline std::size_t most_;
  static inline PreadCall real_;
  sys::Fault<PreadCall> fault_;
};

TEST(DirectFile, GoesOnAfterShortReads) {
  const TempFolder folder;
  const std::string bytes = pattern(5 * 4096 + 10);
  const File file(folder.write("a", bytes));
  SKIP_WITHOUT_DIRECT(file);
  {
    const ShortDirectReads aligned(4096);
    EXPECT_EQ(direct_text(file, 0, 6 * 4096), bytes);
  }
  const ShortDirectReads unaligned(1000);
  EXPECT_EQ(direct_text(file, 0, 6 * 4096), bytes);
}

TEST(DirectFile, IsShortWhereTheFileWasTruncated) {
  const TempFolder folder;
  const std::string bytes = pattern(8192);
  const File file(folder.write("a", bytes));
  SKIP_WITHOUT_DIRECT(file);
  std::filesystem::resize_file(folder / "a", 4100);
  EXPECT_EQ(direct_text(file, 0, 8192), bytes.substr(0, 4100));
}

}  // namespace
}  // namespace lowtide::file_direct_test

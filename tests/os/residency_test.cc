#include "os/residency.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "os/as_nobody.h"
#include "os/file.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/pinned_pages.h"

namespace lowtide::residency_test {
namespace {

std::string reason_when(int (*cachestat)(int, const sys::CachestatRange*, sys::Cachestat*)) {
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  const sys::Fault fault(sys::table.cachestat, cachestat);
  std::string why;
  EXPECT_FALSE(residency(file, 0, 0, &why));
  EXPECT_FALSE(residency(file));
  return why;
}

template <int kErr>
int failing(int, const sys::CachestatRange*, sys::Cachestat*) {
  errno = kErr;
  return -1;
}

TEST(Residency, IsUnknownAndNotZeroWhereItCannotBeAsked) {
  EXPECT_EQ(reason_when(&failing<ENOSYS>), "cachestat: not available before Linux 6.5");
  EXPECT_EQ(reason_when(&failing<EPERM>),
            "cachestat: forbidden for files this user may not write (EPERM)");
  EXPECT_EQ(reason_when(&failing<EOPNOTSUPP>),
            "cachestat: not supported by this file system (EOPNOTSUPP)");
  EXPECT_EQ(reason_when(&failing<EIO>), "cachestat: Input/output error");
}

sys::CachestatRange asked;

int ten_pages(int, const sys::CachestatRange* range, sys::Cachestat* out) {
  asked = *range;
  *out = {.cached_pages = 10,
          .dirty_pages = 2,
          .writeback_pages = 1,
          .evicted_pages = 0,
          .recently_evicted_pages = 0};
  return 0;
}

TEST(Residency, CountsPagesAsBytesAndNeverMoreThanTheRange) {
  const TempFolder folder;
  const std::uint64_t page = page_bytes();
  const std::uint64_t size = 20 * page + 5;
  const File file(folder.write("a", pattern(size)));
  const sys::Fault fault(sys::table.cachestat, &ten_pages);

  EXPECT_EQ(residency(file)->cached_bytes, 10 * page);
  EXPECT_EQ(residency(file)->dirty_bytes, 3 * page);
  EXPECT_EQ(asked.offset_bytes, 0u);
  EXPECT_EQ(asked.size_bytes, size);

  EXPECT_EQ(residency(file, 100, 50)->cached_bytes, 50u);
  EXPECT_EQ(asked.offset_bytes, 100u);
  EXPECT_EQ(residency(file, 20 * page)->cached_bytes, 5u);
  EXPECT_EQ(asked.size_bytes, 5u);
  EXPECT_EQ(residency(file, 20 * page, ~0ULL)->cached_bytes, 5u);
}

TEST(Residency, OfAnEmptyRangeIsNothing) {
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  const sys::Fault fault(sys::table.cachestat, &ten_pages);
  EXPECT_EQ(residency(file, 1)->cached_bytes, 0u);
  EXPECT_EQ(residency(file, 1000, 10)->cached_bytes, 0u);
}

TEST(Residency, SeesAFileLeaveTheCacheAndComeBack) {
  const TempFolder folder;
  const std::size_t size = 4 << 20;
  const std::string path = folder.write("a", pattern(size));
  const File file(path);
  std::string why;
  if (!residency(file, 0, 0, &why)) GTEST_SKIP() << why;
  if (!evict_all(path)) GTEST_SKIP() << "this file system keeps its cache";
  EXPECT_EQ(residency(file)->cached_bytes, 0u);
  const PinnedPages pinned(path, size);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  EXPECT_EQ(residency(file)->cached_bytes, size);
  EXPECT_EQ(residency(file)->dirty_bytes, 0u);
}

TEST(Residency, IsUnknownForTheFileOfAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make a file that another owns";
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(4096));
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  const std::string said = as_nobody([&path] {
    const File file(path);
    std::string why = "known";
    (void)residency(file, 0, 0, &why);
    return why;
  });
  if (said == "known") GTEST_SKIP() << "this kernel tells anybody";
  if (said.ends_with("before Linux 6.5")) GTEST_SKIP() << said;
  EXPECT_EQ(said, "cachestat: forbidden for files this user may not write (EPERM)");
}

TEST(WriteBack, TriesAgainWhenInterrupted) {
  static int calls;
  calls = 0;
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  const sys::Fault fault(
      sys::table.fdatasync, +[](int) {
        errno = calls++ == 0 ? EINTR : ENOSPC;
        return -1;
      });
  EXPECT_EQ(write_back(file), ENOSPC);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace lowtide::residency_test

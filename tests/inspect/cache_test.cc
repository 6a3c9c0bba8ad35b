#include "lowtide/command/cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "os/as_nobody.h"
#include "os/file.h"
#include "os/residency.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/pinned_pages.h"

namespace lowtide::cache_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

template <int kErr>
int no_cachestat(int, const sys::CachestatRange*, sys::Cachestat*) {
  errno = kErr;
  return -1;
}

// Why eviction cannot be seen here; empty: it can.
std::string why_blind(const std::string& path) {
  const File file(path);
  std::string why;
  if (!residency(file, 0, 0, &why)) return why;
  return lives_in_memory(file) ? "files of tests lie on a tmpfs" : "";
}

TEST(CacheState, ShowsEachPartOfAFile) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(4 * kMiB));
  if (const std::string why = why_blind(path); !why.empty()) GTEST_SKIP() << why;
  ASSERT_TRUE(evict_file(path).done);
  const PinnedPages pinned(path, kMiB);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const CacheState state = cache_state(path, 4);
  ASSERT_EQ(state.parts.size(), 4u);
  EXPECT_EQ(state.parts[0], 1);
  EXPECT_GE(state.cached_bytes, kMiB);
  const double all = std::accumulate(state.parts.begin(), state.parts.end(), 0.0);
  EXPECT_NEAR(all * kMiB, static_cast<double>(*state.cached_bytes), 1);
}

TEST(CacheState, HasNoMorePartsThanPages) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(2 * page_bytes() + 1));
  if (const std::string why = why_blind(path); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EQ(cache_state(path, 100).parts.size(), 3u);
  EXPECT_TRUE(cache_state(folder.write("empty", ""), 100).parts.empty());
}

TEST(CacheState, IsUnknownAndNotZeroWhereItCannotBeSeen) {
  const TempFolder folder;
  const std::string path = folder.write("a", "x");
  const sys::Fault fault(sys::table.cachestat, &no_cachestat<ENOSYS>);
  const CacheState state = cache_state(path, 4);
  EXPECT_FALSE(state.cached_bytes);
  EXPECT_TRUE(state.parts.empty());
  EXPECT_NE(state.unknown.find("6.5"), std::string::npos);
}

TEST(EvictFile, WritesDirtyPagesAndLeavesNothing) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(3 * kMiB + 5));
  if (const std::string why = why_blind(path); !why.empty()) GTEST_SKIP() << why;
  const CacheChange change = evict_file(path);
  EXPECT_TRUE(change.done);
  EXPECT_EQ(change.after_bytes, 0u);
  EXPECT_TRUE(change.reasons.empty());
  EXPECT_EQ(cache_state(path, 1).dirty_bytes, 0u);
}

TEST(EvictFile, NamesTheProcessThatHoldsThePages) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(kMiB));
  if (const std::string why = why_blind(path); !why.empty()) GTEST_SKIP() << why;
  const PinnedPages pinned(path, kMiB);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const CacheChange change = evict_file(path);
  EXPECT_FALSE(change.done);
  EXPECT_EQ(change.after_bytes, kMiB);
  ASSERT_EQ(change.reasons.size(), 1u);
  EXPECT_TRUE(change.reasons.front().starts_with("locked by process " + std::to_string(::getpid())))
      << change.reasons.front();
}

TEST(EvictFile, IsNotDoneWhereTheResultCannotBeSeen) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(kMiB));
  const sys::Fault fault(sys::table.cachestat, &no_cachestat<EPERM>);
  const CacheChange change = evict_file(path);
  EXPECT_FALSE(change.done);
  EXPECT_FALSE(change.before_bytes);
  ASSERT_EQ(change.reasons.size(), 1u);
  EXPECT_NE(change.reasons.front().find("unknown"), std::string::npos);
}

int failing_sync(int) {
  errno = EIO;
  return -1;
}

TEST(EvictFile, ThrowsWhatTheDiskSaysAndDropsNothing) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(kMiB));
  const DropSpy spy;
  const sys::Fault fault(sys::table.fdatasync, &failing_sync);
  EXPECT_THROW((void)evict_file(path), IoError);
  EXPECT_EQ(spy.first_bytes(), std::numeric_limits<std::uint64_t>::max());
}

std::uint64_t read_bytes;
std::uint64_t longest_wish_bytes;
sys::Table real;

ssize_t counted_pread(int fd, void* into, std::size_t size, off_t offset) {
  const ssize_t got = real.pread(fd, into, size, offset);
  if (got > 0) read_bytes += static_cast<std::uint64_t>(got);
  return got;
}

int counted_fadvise(int, off_t, off_t size, int) {
  longest_wish_bytes = std::max(longest_wish_bytes, static_cast<std::uint64_t>(size));
  return 0;  // and does nothing, as the kernel may
}

TEST(WarmFile, ReadsAllOfItWhateverBecomesOfTheAdvice) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(5 * kMiB + 3));
  real = sys::table;
  read_bytes = longest_wish_bytes = 0;
  const sys::Fault reads(sys::table.pread, &counted_pread);
  const sys::Fault wishes(sys::table.fadvise, &counted_fadvise);
  std::uint64_t told_bytes = 0;
  const CacheChange change =
      warm_file(path, [&](std::uint64_t done, std::uint64_t) { return (told_bytes = done) > 0; });
  EXPECT_GE(read_bytes, 5 * kMiB + 3);  // and a little of /proc
  EXPECT_LE(longest_wish_bytes, 128u << 10);
  EXPECT_EQ(told_bytes, 5 * kMiB + 3);
  EXPECT_EQ(change.done, change.after_bytes == change.bytes);
  EXPECT_EQ(change.done, change.reasons.empty());
}

TEST(WarmFile, StopsWhereItIsTold) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(8 * kMiB));
  real = sys::table;
  read_bytes = 0;
  const sys::Fault blind(sys::table.cachestat, &no_cachestat<EPERM>);
  const sys::Fault reads(sys::table.pread, &counted_pread);
  const CacheChange change =
      warm_file(path, [](std::uint64_t done, std::uint64_t) { return done < 3 * kMiB; });
  EXPECT_LT(read_bytes, 4 * kMiB);  // and a little of /proc
  EXPECT_FALSE(change.done);
  EXPECT_EQ(change.reasons, std::vector<std::string>{"stopped after 3 MiB of 8 MiB"});
}

TEST(EvictFile, StopsWhereItIsTold) {
  const TempFolder folder;
  const std::string path = folder.write("a", "x");
  std::filesystem::resize_file(path, 200 * kMiB);
  const sys::Fault blind(sys::table.cachestat, &no_cachestat<EPERM>);
  int told = 0;
  const CacheChange change =
      evict_file(path, [&](std::uint64_t, std::uint64_t) { return ++told < 2; });
  EXPECT_EQ(told, 2);
  EXPECT_FALSE(change.done);
  EXPECT_EQ(change.reasons, std::vector<std::string>{"stopped after 128 MiB of 200 MiB"});
}

ssize_t failing_pread(int fd, void* into, std::size_t size, off_t offset) {
  if (size < kMiB) return real.pread(fd, into, size, offset);
  errno = EIO;
  return -1;
}

TEST(WarmFile, ThrowsWhatAReadSays) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(2 * kMiB));
  real = sys::table;
  const sys::Fault fault(sys::table.pread, &failing_pread);
  EXPECT_THROW((void)warm_file(path), IoError);
}

TEST(FilesOf, TakesFilesPatternsAndFolders) {
  const TempFolder folder;
  const std::string a = folder.write("d/a*", "x");
  const std::string b = folder.write("d/b", "x");
  folder.write("d/deeper/c", "x");
  EXPECT_EQ(files_of(a), std::vector{a});
  EXPECT_EQ(files_of(folder / "d/?"), std::vector{b});
  EXPECT_EQ(files_of(folder / "d"), (std::vector{a, b}));
  EXPECT_THROW((void)files_of(folder / "none"), IoError);
}

}  // namespace
}  // namespace lowtide::cache_test

#include "system/mapped_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "os/sys.h"
#include "support/mapped_file.h"

namespace lowtide::mapped_pages_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

int no_ioctl(int, unsigned long, void*) {
  errno = ENOTTY;
  return -1;
}

TEST(PageCounter, CountsWhatWasTouchedAndNotWhatIsCached) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(8 * kMiB));
  const MappedFile map(path, 8 * kMiB);
  EXPECT_EQ(map.entered_bytes(), 0u);  // all of it is in the page cache
  map.read(0, 8 * kMiB);
  EXPECT_EQ(map.entered_bytes(), 8 * kMiB);
}

TEST(PageCounter, CountsOnlyTheRange) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(8 * kMiB));
  const MappedFile map(path, 8 * kMiB);
  map.read(0, 8 * kMiB);
  PageCounter counter;
  EXPECT_EQ(counter.entered_bytes(map.data() + 1, 1), page_bytes());
  EXPECT_EQ(counter.entered_bytes(map.data() + page_bytes() - 1, 2), 2 * page_bytes());
  EXPECT_EQ(counter.entered_bytes(map.data() + kMiB, kMiB), kMiB);
}

TEST(PageCounter, CountsTheSamePageByPageWhereTheKernelHasNoScan) {
  const TempFolder folder;
  const std::string path = sparse_file(folder, "a", 64 * kMiB);
  const MappedFile map(path, 64 * kMiB);
  for (std::uint64_t at = 0; at < 64 * kMiB; at += 3 * kMiB) map.read(at, 1);
  const std::uint64_t scanned = map.entered_bytes().value();
  EXPECT_GT(scanned, 0u);
  EXPECT_LT(scanned, 64 * kMiB);
  const sys::Fault fault(sys::table.ioctl, &no_ioctl);
  EXPECT_EQ(map.entered_bytes(), scanned);
}

TEST(PageCounter, IsUnknownAndNotZeroWhereProcCannotBeRead) {
  const TempFolder folder;
  const MappedFile map(folder.write("a", pattern(4096)), 4096);
  const sys::Fault fault(
      sys::table.open, +[](const char*, int) {
        errno = EACCES;
        return -1;
      });
  PageCounter counter;
  EXPECT_EQ(counter.err(), EACCES);
  EXPECT_FALSE(counter.entered_bytes(map.data(), 4096));
  EXPECT_FALSE(resident_file_bytes());
}

TEST(ResidentFileBytes, GrowsAndFallsWithTheMap) {
  const TempFolder folder;
  const MappedFile map(folder.write("a", pattern(32 * kMiB)), 32 * kMiB);
  const std::uint64_t before = resident_file_bytes().value();
  map.read(0, map.size());
  const std::uint64_t full = resident_file_bytes().value();
  EXPECT_GE(full, before + 30 * kMiB);  // the kernel may be some pages behind
  ASSERT_EQ(give_back_pages(map.data(), map.size()), 0);
  EXPECT_LE(resident_file_bytes().value(), full - 30 * kMiB);
}

TEST(GiveBackPages, KeepsWhatWasWrittenToASharedMap) {
  const TempFolder folder;
  const std::string path = sparse_file(folder, "a", 4 * kMiB);
  const MappedFile map(path, 4 * kMiB, PROT_READ | PROT_WRITE);
  map.data()[12345] = 7;
  ASSERT_EQ(give_back_pages(map.data(), map.size()), 0);
  EXPECT_EQ(map.entered_bytes(), 0u);
  EXPECT_EQ(map.data()[12345], 7);
}

TEST(GiveBackPages, IsRefusedForLockedPages) {
  const TempFolder folder;
  const MappedFile map(folder.write("a", pattern(4096)), 4096);
  if (!lock_pages(map.data(), 4096)) GTEST_SKIP() << "pages cannot be locked here";
  EXPECT_EQ(give_back_pages(map.data(), 4096), EINVAL);
  EXPECT_EQ(map.entered_bytes(), 4096u);
}

TEST(MayLoseWrites, TellsTheKindsOfMapsApart) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(2 * 4096));
  const auto kind = [&](int protection, int flags) {
    const MappedFile map(path, 2 * 4096, protection, flags);
    return may_lose_writes(map.data() + 4096, 1);
  };
  EXPECT_EQ(kind(PROT_READ | PROT_WRITE, MAP_PRIVATE), true);
  EXPECT_EQ(kind(PROT_READ, MAP_PRIVATE), false);
  EXPECT_EQ(kind(PROT_READ | PROT_WRITE, MAP_SHARED), false);
  EXPECT_EQ(kind(PROT_READ, MAP_SHARED), false);
}

TEST(MayLoseWrites, SeesThatAMapWasWrittenBeforeItBecameReadOnly) {
  const TempFolder folder;
  const MappedFile map(folder.write("a", pattern(2 * kMiB)), 2 * kMiB, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE);
  map.read(0, map.size());
  map.data()[kMiB] = 7;
  ASSERT_EQ(::mprotect(map.data(), map.size(), PROT_READ), 0);
  EXPECT_EQ(may_lose_writes(map.data(), map.size()), true);
  EXPECT_EQ(may_lose_writes(map.data(), kMiB), false);
  EXPECT_EQ(PageCounter().copied_bytes(map.data(), map.size()), page_bytes());
}

}  // namespace
}  // namespace lowtide::mapped_pages_test

#include "ceiling/drop_behind.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/error.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/data_file.h"

namespace lowtide::drop_behind_test {
namespace {

constexpr std::uint64_t kSlab = DropBehind::kSlabBytes;

std::vector<std::pair<off_t, off_t>> dropped;
int note_fadvise(int, off_t offset, off_t size, int advice) {
  if (advice == POSIX_FADV_DONTNEED) dropped.emplace_back(offset / kSlab, size / kSlab);
  return 0;
}

// Slabs 2 and 5, a page each.
int two_slabs_cached(int, const sys::CachestatRange* range, sys::Cachestat* out) {
  *out = {};
  for (const std::uint64_t cached : {2 * kSlab, 5 * kSlab}) {
    if (cached >= range->offset_bytes && cached < range->offset_bytes + range->size_bytes) {
      ++out->cached_pages;
    }
  }
  return 0;
}

int forbidden(int, const sys::CachestatRange*, sys::Cachestat*) {
  errno = EPERM;
  return -1;
}

std::string ten_slabs(const TempFolder& folder) {
  const std::string path = folder.write("a", "");
  EXPECT_EQ(::truncate(path.c_str(), static_cast<off_t>(9 * kSlab + 5)), 0);
  return path;
}

using Runs = std::vector<std::pair<off_t, off_t>>;

Runs runs_with(decltype(sys::Table::cachestat) cachestat, std::uint64_t offset,
               std::uint64_t size) {
  const TempFolder folder;
  const sys::Fault stat(sys::table.cachestat, cachestat);
  const sys::Fault advice(sys::table.fadvise, &note_fadvise);
  DropBehind drop(ten_slabs(folder), offset, size);
  dropped.clear();
  drop.drop();
  return dropped;
}

TEST(DropBehind, LeavesSlabsThatWereCachedBefore) {
  EXPECT_EQ(runs_with(&two_slabs_cached, 0, 9 * kSlab + 5), (Runs{{0, 2}, {3, 2}, {6, 4}}));
}

TEST(DropBehind, WorksOnWholeSlabsOfTheFileWhereverTheMapStarts) {
  EXPECT_EQ(runs_with(&two_slabs_cached, kSlab + 4096, 3 * kSlab), (Runs{{1, 1}, {3, 2}}));
}

TEST(DropBehind, DropsAllWhereTheKernelDoesNotTell) {
  EXPECT_EQ(runs_with(&forbidden, 0, 9 * kSlab + 5), (Runs{{0, 10}}));
}

TEST(DropBehind, EmptiesTheCacheOfAFileThatWasCold) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(8 * kSlab + 100));
  if (!evict_all(path)) GTEST_SKIP() << "this file system keeps its cache";
  if (!cached_bytes(path)) GTEST_SKIP() << "cachestat is not available";
  DropBehind drop(path, 0, 8 * kSlab + 100);
  warm(path, 0, 8 * kSlab + 100);
  for (int attempt = 0; attempt < 50 && cached_bytes(path) != 0; ++attempt) drop.drop();
  EXPECT_EQ(cached_bytes(path), 0u);
}

TEST(DropBehind, AFileThatIsNotThereIsAnError) {
  EXPECT_THROW(DropBehind("/nowhere/at/all", 0, 1), IoError);
}

}  // namespace
}  // namespace lowtide::drop_behind_test

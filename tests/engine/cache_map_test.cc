#include "engine/cache_map.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "os/sys.h"
#include "support/data_file.h"

namespace lowtide::cache_map_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kPageBytes = 4096;

// A kernel that says that [from, to) of every file is cached.
std::uint64_t cached_from, cached_to;
int questions;

int answer(int, const sys::CachestatRange* range, sys::Cachestat* out) {
  ++questions;
  const std::uint64_t begin = std::max(range->offset_bytes, cached_from);
  const std::uint64_t end = std::min(range->offset_bytes + range->size_bytes, cached_to);
  *out = {};
  out->cached_pages = begin < end ? (end - begin + kPageBytes - 1) / kPageBytes : 0;
  return 0;
}

class CacheMapTest : public testing::Test {
 protected:
  CacheMapTest() : fault_(sys::table.cachestat, &answer) {
    cached_from = cached_to = 0;
    questions = 0;
    EXPECT_EQ(::truncate(folder_.write("a", "x").c_str(), static_cast<off_t>(kFileBytes)), 0);
  }
  [[nodiscard]] std::shared_ptr<Files> files() const { return files_of({folder_ / "a"}); }
  static Extent at(std::uint64_t offset_bytes, std::uint32_t size_bytes = 648) {
    return {.offset_bytes = offset_bytes, .size_bytes = size_bytes, .shard = 0};
  }

  static constexpr std::uint64_t kFileBytes = 64 * kMiB + 100;
  TempFolder folder_;
  sys::Fault<decltype(sys::Table::cachestat)> fault_;
};

TEST_F(CacheMapTest, TellsAColdFileFromAHotOne) {
  CacheMap cold(files());
  EXPECT_FALSE(cold.resident(at(0)));
  EXPECT_EQ(cold.share(), 0);
  EXPECT_EQ(cold.reason(), "0 % of the data is in the page cache");
  cached_to = kFileBytes;
  CacheMap hot(files());
  EXPECT_TRUE(hot.resident(at(0)));
  EXPECT_TRUE(hot.resident(at(kFileBytes - 648)));
  EXPECT_EQ(hot.share(), 1);
  EXPECT_EQ(hot.reason(), "100 % of the data is in the page cache");
  EXPECT_EQ(questions, 2) << "one for each map";
}

TEST_F(CacheMapTest, CallsAZoneCachedOnlyFarFromTheBorder) {
  cached_to = 32 * kMiB;
  CacheMap map(files());
  EXPECT_TRUE(map.resident(at(0)));
  EXPECT_TRUE(map.resident(at(20 * kMiB)));
  EXPECT_FALSE(map.resident(at(31 * kMiB))) << "the kernel would read on behind it";
  EXPECT_FALSE(map.resident(at(32 * kMiB)));
  EXPECT_FALSE(map.resident(at(60 * kMiB)));
  EXPECT_FALSE(map.resident(at(0, 40 * kMiB))) << "a part of it is not";
  EXPECT_EQ(map.reason(), "50 % of the data is in the page cache");
}

// Whether each page of a file is cached.
std::vector<bool> cached_pages;

int answer_by_page(int, const sys::CachestatRange* range, sys::Cachestat* out) {
  *out = {};
  const std::uint64_t end = range->offset_bytes + range->size_bytes;
  for (std::uint64_t page = range->offset_bytes / kPageBytes; page * kPageBytes < end; ++page) {
    if (cached_pages[page]) ++out->cached_pages;
  }
  return 0;
}

TEST_F(CacheMapTest, FindsTheSameZonesAsAskingAboutEachOfThem) {
  const sys::Fault fault(sys::table.cachestat, &answer_by_page);
  constexpr std::uint64_t kZone = CacheMap::kZoneBytes;
  constexpr std::uint64_t kPages = (kFileBytes + kPageBytes - 1) / kPageBytes;
  constexpr std::uint64_t kZones = (kFileBytes + kZone - 1) / kZone;
  for (std::uint64_t holes = 0; holes < 12; ++holes) {
    cached_pages.assign(kPages, true);
    std::uint64_t chance = holes + 1;
    for (std::uint64_t i = 0; i < holes; ++i) {
      chance = chance * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
      cached_pages[(chance >> 33) % kPages] = false;
    }
    const auto whole = [&](std::uint64_t zone) {
      const std::uint64_t last = std::min(kPages, (zone + 1) * kZone / kPageBytes);
      return std::all_of(cached_pages.begin() + static_cast<long>(zone * kZone / kPageBytes),
                         cached_pages.begin() + static_cast<long>(last),
                         [](bool cached) { return cached; });
    };
    CacheMap map(files());
    for (std::uint64_t zone = 0; zone < kZones; ++zone) {
      // The two zones behind it are within the reach of the read-ahead.
      bool expected = true;
      for (std::uint64_t i = zone; i < std::min(kZones, zone + 3); ++i) expected &= whole(i);
      EXPECT_EQ(map.resident(at(zone * kZone, 1)), expected) << holes << ", zone " << zone;
    }
  }
}

TEST_F(CacheMapTest, AsksLittleAboutALongFileOfWhichLittleIsCached) {
  ASSERT_EQ(::truncate((folder_ / "a").c_str(), off_t{1} << 40), 0);
  cached_from = std::uint64_t{1} << 39;
  cached_to = cached_from + kPageBytes;
  CacheMap map(files());
  EXPECT_FALSE(map.resident(at(cached_from)));
  EXPECT_LE(questions, 32) << "not one for each of 16384 zones";
}

TEST_F(CacheMapTest, HasNoBorderAtTheEndOfTheFile) {
  cached_from = 32 * kMiB;
  cached_to = kFileBytes;
  CacheMap map(files());
  EXPECT_FALSE(map.resident(at(0)));
  EXPECT_TRUE(map.resident(at(40 * kMiB)));
  EXPECT_TRUE(map.resident(at(kFileBytes - 1, 1)));
}

TEST_F(CacheMapTest, DoesNotTrustAReadBeyondTheEnd) {
  cached_to = kFileBytes;
  CacheMap map(files());
  EXPECT_FALSE(map.resident(at(kFileBytes + 100 * kMiB)));
}

TEST_F(CacheMapTest, AsksAgainByTimeAndNotByRead) {
  CacheMap map(files());
  const int before = questions;
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(map.resident(at(0)));
    map.refresh();
  }
  const auto quarters =  // of a second; many on a machine that has other things to do
      (std::chrono::steady_clock::now() - began) / std::chrono::milliseconds(250);
  EXPECT_LE(questions, before + 1 + quarters);
  cached_to = kFileBytes;
  for (int i = 0; i < 1000 && !map.resident(at(0)); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    map.refresh();
  }
  EXPECT_TRUE(map.resident(at(0)));
}

TEST_F(CacheMapTest, NeverSaysAllOrNothingOfAPart) {
  cached_to = kPageBytes;
  EXPECT_EQ(CacheMap(files()).reason(), "1 % of the data is in the page cache");
  cached_to = kFileBytes - kPageBytes;
  EXPECT_EQ(CacheMap(files()).reason(), "99 % of the data is in the page cache");
}

TEST_F(CacheMapTest, CallsAFileOfNoBytesCached) {
  CacheMap map(files_of({folder_.write("empty", "")}));
  EXPECT_TRUE(map.resident(at(0, 0)));
  EXPECT_EQ(map.share(), 1);
}

TEST_F(CacheMapTest, StandsAFileThatIsGone) {
  const auto gone = files();
  ASSERT_EQ(::unlink((folder_ / "a").c_str()), 0);
  CacheMap map(gone);
  EXPECT_FALSE(map.resident(at(0)));
}

int forbidden(int, const sys::CachestatRange*, sys::Cachestat*) {
  ++questions;
  errno = EPERM;
  return -1;
}

TEST_F(CacheMapTest, TimesReadsWhereTheKernelDoesNotTell) {
  const sys::Fault fault(sys::table.cachestat, &forbidden);
  CacheMap map(files());
  const bool cached = map.resident(at(0));
  EXPECT_EQ(map.reason(), std::string("timed reads suggest that the data is ") +
                              (cached ? "cached" : "not cached") +
                              " (cachestat: forbidden for files this user may not write (EPERM))");
  EXPECT_EQ(questions, 1) << "asked once and never again";
}

TEST_F(CacheMapTest, AsksOnlySomeOfManyShardsWhenOpened) {
  std::vector<std::string> paths;
  for (int i = 0; i < 200; ++i) paths.push_back(folder_.write(std::to_string(i), "0123456789"));
  CacheMap map(files_of(paths));
  EXPECT_EQ(questions, 64);
  EXPECT_FALSE(map.resident({.offset_bytes = 0, .size_bytes = 5, .shard = 199}));
  EXPECT_LE(questions, 65);
}

TEST_F(CacheMapTest, AsksAgainForEveryOneOfManyShards) {
  std::vector<std::string> paths;
  for (int i = 0; i < 100; ++i) paths.push_back(folder_.write("s" + std::to_string(i), "data"));
  CacheMap map(files_of(paths));
  const auto hot = [&](std::uint32_t shard) {
    return map.resident({.offset_bytes = 0, .size_bytes = 4, .shard = shard});
  };
  for (std::uint32_t shard = 0; shard < 100; ++shard) EXPECT_FALSE(hot(shard));
  cached_to = kPageBytes;
  // One round asks about 64. If the machine stalls meanwhile, asking seems costly and the next
  // round comes later.
  const auto due = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  for (std::uint32_t shard = 0; shard < 100; ++shard) {
    while (!hot(shard) && std::chrono::steady_clock::now() < due) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      map.refresh();
    }
    EXPECT_TRUE(hot(shard)) << shard;
  }
}

TEST_F(CacheMapTest, AsksMoreRarelyWhereAskingTakesLong) {
  using Clock = std::chrono::steady_clock;
  static constexpr auto kAskingTakes = std::chrono::milliseconds(10);
  CacheMap map(files());
  const sys::Fault slow(
      sys::table.cachestat, +[](int fd, const sys::CachestatRange* range, sys::Cachestat* out) {
        std::this_thread::sleep_for(kAskingTakes);
        return answer(fd, range, out);
      });
  const auto start = Clock::now();
  questions = 0;
  while (Clock::now() - start < std::chrono::milliseconds(800)) {
    map.refresh();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(questions, 1);
  EXPECT_LE(questions, 1 + (Clock::now() - start) / (64 * kAskingTakes));
}

}  // namespace
}  // namespace lowtide::cache_map_test

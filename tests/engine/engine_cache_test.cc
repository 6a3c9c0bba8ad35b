// What engines do to the page cache, how they judge it, and what they count.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "os/sys.h"
#include "support/data_file.h"
#include "support/pinned_pages.h"
#include "support/read_rig.h"

namespace lowtide::engine_cache_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kFileBytes = 32 * kMiB + 777;

class EngineCache : public testing::TestWithParam<EngineKind> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam()); !why.empty()) GTEST_SKIP() << why;
    path_ = folder_.write("data.bin", held_);
    if (!cached_bytes(path_)) GTEST_SKIP() << "this kernel does not tell what is cached";
    if (!evict_all(path_)) GTEST_SKIP() << "this file system keeps pages: " << cached() << " bytes";
  }
  [[nodiscard]] std::uint64_t cached() const { return cached_bytes(path_).value_or(0); }
  // 648-byte rows in no order, over [first, last) of the file.
  [[nodiscard]] CheckedReads rows(std::uint64_t first, std::uint64_t last,
                                  std::size_t count) const {
    std::vector<Extent> extents;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t at = first + i * 2'654'435'761 % (last - first - 648);
      extents.push_back({.offset_bytes = at, .size_bytes = 648, .shard = 0});
    }
    return CheckedReads(std::move(extents));
  }
  void read_all(Engine& engine) const {
    const CheckedReads some = rows(0, kFileBytes, 3000);
    ASSERT_TRUE(engine.read(some.reads()).ok());
    some.expect_bytes({&held_});
    std::vector<Extent> all;
    for (std::uint64_t at = 0; at < kFileBytes; at += kMiB) {
      const auto size = static_cast<std::uint32_t>(std::min(kMiB, kFileBytes - at));
      all.push_back({.offset_bytes = at, .size_bytes = size, .shard = 0});
    }
    const CheckedReads whole(std::move(all));
    ASSERT_TRUE(engine.read(whole.reads()).ok());
    whole.expect_bytes({&held_});
  }

  inline static const std::string held_ = pattern(kFileBytes);  // once: it takes most of the time
  TempFolder folder_;
  std::string path_;
};

TEST_P(EngineCache, DropLeavesNothingBehind) {
  const EngineRig rig(files_of({path_}), {GetParam(), CacheMode::drop}, 8 * kMiB);
  read_all(*rig.engine);
  EXPECT_EQ(cached(), 0U);
}

TEST_P(EngineCache, DropLeavesAFileThatWasCachedBeforeCached) {
  const PinnedPages pinned(path_, kFileBytes);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const DropSpy spy;
  const EngineRig rig(files_of({path_}), {GetParam(), CacheMode::drop}, 8 * kMiB);
  read_all(*rig.engine);
  EXPECT_GT(DropSpy::first_bytes(), kFileBytes) << "nothing was to be dropped";
}

TEST_P(EngineCache, DropServesAHalfCachedFileFromBothAndLetsItGrowLittle) {
  const PinnedPages pinned(path_, 20 * kMiB);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const std::uint64_t before = cached();
  const DropSpy spy;
  const EngineRig rig(files_of({path_}), {GetParam(), CacheMode::drop}, 8 * kMiB);
  for (int round = 0; round < 3; ++round) {
    const CheckedReads both = rows(0, kFileBytes, 2000);
    ASSERT_TRUE(rig.engine->read(both.reads()).ok());
    both.expect_bytes({&held_});
    const CheckedReads border = rows(19 * kMiB, 21 * kMiB, 100);
    ASSERT_TRUE(rig.engine->read(border.reads()).ok());
    border.expect_bytes({&held_});
  }
  EXPECT_GE(DropSpy::first_bytes(), 20 * kMiB) << "what was cached before was to be dropped";
  EXPECT_LE(cached(), before + 8 * kMiB);
}

int (*plain_open)(const char*, int);
int open_without_direct(const char* path, int flags) {
  if ((flags & O_DIRECT) != 0) {
    errno = EINVAL;
    return -1;
  }
  return plain_open(path, flags);
}

TEST_P(EngineCache, DropWithoutDirectReadsDropsBehindItself) {
  const sys::Fault fault(sys::table.open, &open_without_direct);
  plain_open = fault.real();
  const EngineRig rig(files_of({path_}), {GetParam(), CacheMode::drop}, 8 * kMiB);
  read_all(*rig.engine);
  EXPECT_LE(cached(), kMiB);
}

ssize_t (*plain_pread)(int, void*, std::size_t, off_t);
ssize_t pread_without_direct(int fd, void* into, std::size_t size, off_t offset) {
  if ((::fcntl(fd, F_GETFL) & O_DIRECT) != 0) {
    errno = EINVAL;
    return -1;
  }
  return plain_pread(fd, into, size, offset);
}

TEST_P(EngineCache, DropDropsBehindItselfWhereDirectIsRefusedByTheReadAlone) {
  if (GetParam() != EngineKind::pread) GTEST_SKIP() << "the fault is one of pread";
  const sys::Fault fault(sys::table.pread, &pread_without_direct);
  plain_pread = fault.real();
  const EngineRig rig(files_of({path_}), {GetParam(), CacheMode::drop}, 8 * kMiB);
  read_all(*rig.engine);
  EXPECT_LE(cached(), kMiB);
}

template <int kErr>
int no_cachestat(int, const sys::CachestatRange*, sys::Cachestat*) {
  errno = kErr;
  return -1;
}

TEST_P(EngineCache, IsJudgedByTimeWhereTheKernelDoesNotTell) {
  for (const auto& cachestat : {&no_cachestat<ENOSYS>, &no_cachestat<EPERM>}) {
    for (const CacheMode cache : {CacheMode::keep, CacheMode::drop}) {
      const sys::Fault fault(sys::table.cachestat, cachestat);
      const EngineRig rig(files_of({path_}), {GetParam(), cache}, 8 * kMiB);
      read_all(*rig.engine);
      if (GetParam() != EngineKind::automatic) continue;
      const std::string reason = rig.engine->reason();
      EXPECT_EQ(reason.find("timed reads suggest that the data is "), 0U) << reason;
      EXPECT_NE(reason.find("(cachestat: "), std::string::npos) << reason;
    }
  }
}

TEST_P(EngineCache, IsNamedInTheReason) {
  if (GetParam() != EngineKind::automatic) GTEST_SKIP() << "an engine by name was asked for";
  {
    const EngineRig cold(files_of({path_}), {GetParam(), CacheMode::keep}, 8 * kMiB);
    EXPECT_EQ(cold.engine->reason().find("0 % of the data is in the page cache"), 0U);
    EXPECT_FALSE(cold.engine->prospect().resident);
    EXPECT_GT(cold.engine->prospect().gap_bytes, 0U);
  }
  const std::string small = folder_.write("small.bin", pattern(kMiB));
  const PinnedPages pinned(small, kMiB);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const EngineRig hot(files_of({small}), {GetParam(), CacheMode::keep}, 8 * kMiB);
  EXPECT_EQ(hot.engine->reason().find("100 % of the data is in the page cache"), 0U);
  EXPECT_TRUE(hot.engine->prospect().resident);
  EXPECT_EQ(hot.engine->name(), "pread");
}

// What 500 cached rows of 1000 bytes, every `step_bytes`, cost; from the last to the first unless
// they are `sorted`.
Traffic traffic_of_cached_rows(const TempFolder& folder, EngineKind kind, bool sorted,
                               std::uint64_t step_bytes) {
  const std::uint64_t size_bytes = 500 * step_bytes;
  const std::string bytes = pattern(size_bytes);
  const std::string path = folder.write("small.bin", bytes);
  const PinnedPages pinned(path, size_bytes);
  EXPECT_EQ(pinned.why_not(), "");
  const EngineRig rig(files_of({path}), {kind, CacheMode::keep}, 8 * kMiB);
  std::vector<Extent> extents;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t at = sorted ? i : 499 - i;
    extents.push_back({.offset_bytes = at * step_bytes, .size_bytes = 1000, .shard = 0});
  }
  const CheckedReads wanted(std::move(extents));
  WaitedSet set(wanted.reads());
  rig.engine->submit(set);
  EXPECT_TRUE(set.wait().ok());
  wanted.expect_bytes({&bytes});
  return rig.engine->traffic();
}

TEST_P(EngineCache, ReadsCachedRowsOneByOneIfTheyAreNotSortedOrFarApart) {
  for (const Traffic& traffic : {traffic_of_cached_rows(folder_, GetParam(), false, 1200),
                                 traffic_of_cached_rows(folder_, GetParam(), true, 50'000)}) {
    EXPECT_EQ(traffic.reads, 500U);
    EXPECT_EQ(traffic.bytes_read, 500'000U);
    EXPECT_EQ(traffic.merged, 0U);
  }
}

TEST_P(EngineCache, ReadsSortedCachedRowsTogetherWithWhatIsBetweenThem) {
  const Traffic traffic = traffic_of_cached_rows(folder_, GetParam(), true, 1200);
  if (GetParam() == EngineKind::uring) {
    EXPECT_EQ(traffic.merged, 0U) << "one thread feeds the ring, so nothing is gained";
    return;
  }
  EXPECT_LE(traffic.reads, 20U);
  EXPECT_GT(traffic.bytes_read, 590'000U);
  EXPECT_LT(traffic.bytes_read, 600'000U);
  EXPECT_EQ(traffic.reads + traffic.merged, 500U);
}

TEST_P(EngineCache, CountsMergedRowsOnTheDiskExactly) {
  const EngineRig rig(files_of({path_}), {GetParam(), CacheMode::keep}, 64 * kMiB);
  std::vector<Extent> extents;  // ten groups far apart; in each, twenty neighbours
  for (std::uint64_t i = 0; i < 200; ++i) {
    const std::uint64_t at = i / 20 * kMiB + i % 20 * 1000;
    extents.push_back({.offset_bytes = at, .size_bytes = 500, .shard = 0});
  }
  const CheckedReads wanted(std::move(extents));
  WaitedSet set(wanted.reads());
  rig.engine->submit(set);
  ASSERT_TRUE(set.wait().ok());
  wanted.expect_bytes({&held_});
  const Traffic traffic = rig.engine->traffic();
  EXPECT_EQ(traffic.reads, 10U);
  EXPECT_EQ(traffic.merged, 190U);
  EXPECT_EQ(traffic.bytes_read, 10 * (19 * 1000U + 500));
}

// Counts the plain reads of the thread that made it.
class ReadSpy {
 public:
  ReadSpy() : fault_(sys::table.pread, &pread) {
    reads_ = 0;
    caller_ = std::this_thread::get_id();
    real_ = fault_.real();
  }
  [[nodiscard]] static int reads() { return reads_; }

 private:
  static ssize_t pread(int fd, void* into, std::size_t size, off_t offset) {
    if (std::this_thread::get_id() == caller_) ++reads_;
    return real_(fd, into, size, offset);
  }
  static inline std::atomic<int> reads_;
  static inline std::thread::id caller_;
  static inline decltype(sys::Table::pread) real_;
  sys::Fault<decltype(sys::Table::pread)> fault_;
};

TEST_P(EngineCache, ReadsOneHoleOfACachedFileAsTheRest) {
  if (GetParam() != EngineKind::automatic) GTEST_SKIP() << "an engine by name was asked for";
  const PinnedPages pinned(path_, 30 * kMiB);  // 93 % of it
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const auto read = [&](CacheMode cache, std::size_t rows_of_hole) {
    const EngineRig rig(files_of({path_}), {GetParam(), cache}, 8 * kMiB);
    std::vector<Extent> extents;
    for (std::uint64_t i = 0; i < 10; ++i) {
      const std::uint64_t at = i < rows_of_hole ? 31 * kMiB + i * 9000 : i * kMiB;
      extents.push_back({.offset_bytes = at, .size_bytes = 648, .shard = 0});
    }
    const CheckedReads wanted(std::move(extents));
    const ReadSpy spy;
    EXPECT_TRUE(rig.engine->read(wanted.reads()).ok());
    wanted.expect_bytes({&held_});
    return ReadSpy::reads();
  };
  EXPECT_EQ(read(CacheMode::keep, 0), 10) << "where the caller stands";
  EXPECT_LT(read(CacheMode::drop, 1), 10) << "it would bring the hole into the cache";
  EXPECT_EQ(read(CacheMode::keep, 1), 10) << "handing over costs more than one miss";
}

TEST_P(EngineCache, PastTheCacheReadsTheDiskWhateverIsCachedAndDropsNothing) {
  const PinnedPages pinned(path_, kFileBytes);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const DropSpy spy;
  Budget budget(64 * kMiB);
  const std::unique_ptr<Engine> engine =
      open_engine(files_of({path_}),
                  {.engine = GetParam(), .cache = CacheMode::drop, .past_cache = true}, budget,
                  /*allow_memory=*/false);
  EXPECT_FALSE(engine->prospect().resident);
  read_all(*engine);
  EXPECT_GT(engine->traffic().merged, 0U) << "cached rows are never merged";
  const bool ring = GetParam() != EngineKind::pread && why_not(EngineKind::uring).empty();
  EXPECT_EQ(engine->name(), ring ? "uring" : "pread");
  if (File(path_).direct_fd() >= 0) {
    EXPECT_GT(DropSpy::first_bytes(), kFileBytes);
  }
}

TEST_P(EngineCache, AGapBoundsWhatIsReadForNobody) {
  constexpr std::uint64_t kRow = 512, kSpacing = 4096;  // 3.5 KiB between two rows
  const auto read = [&](std::optional<std::uint64_t> gap_bytes) {
    Budget budget(64 * kMiB);
    const std::unique_ptr<Engine> engine = open_engine(files_of({path_}),
                                                       {.engine = GetParam(),
                                                        .cache = CacheMode::drop,
                                                        .gap_bytes = gap_bytes,
                                                        .past_cache = true},
                                                       budget, /*allow_memory=*/false);
    std::vector<Extent> extents;
    for (std::uint64_t i = 0; i < 4096; ++i) {
      extents.push_back({.offset_bytes = i * kSpacing, .size_bytes = kRow, .shard = 0});
    }
    const CheckedReads wanted(std::move(extents));
    EXPECT_TRUE(engine->read(wanted.reads()).ok());
    wanted.expect_bytes({&held_});
    return std::pair(engine->traffic(), engine->prospect().gap_bytes);
  };
  const auto [fitted, fitted_gap] = read(std::nullopt);
  EXPECT_GT(fitted.merged, 3500U);
  EXPECT_GT(fitted_gap, 0U);
  const auto [none, no_gap] = read(0);
  EXPECT_EQ(none.merged, 0U);
  EXPECT_EQ(none.reads, 4096U);
  EXPECT_EQ(no_gap, 0U);
  EXPECT_LE(none.bytes_read, 4096 * std::max<std::uint64_t>(kRow, 4096));
  const auto [wide, wide_gap] = read(1 << 30);
  EXPECT_GT(wide.merged, 3500U);
  EXPECT_LE(wide_gap, 128U * 1024) << "it bounds, it does not widen";
  EXPECT_GE(fitted.bytes_read, none.bytes_read);
}

INSTANTIATE_TEST_SUITE_P(Engines, EngineCache,
                         testing::Values(EngineKind::pread, EngineKind::uring,
                                         EngineKind::automatic),
                         [](const auto& one) { return EngineCase{one.param}.name(); });

TEST(MemoryEngine, ServesFromMemoryOnceItHasBeenRead) {
  const TempFolder folder;
  const std::string held = pattern(3 * kMiB + 7);
  const std::string path = folder.write("a", held);
  const EngineRig rig(files_of({path}), {EngineKind::memory, CacheMode::drop}, 16 * kMiB);
  EXPECT_TRUE(rig.engine->holds_data());
  EXPECT_EQ(rig.engine->name(), "memory");
  EXPECT_EQ(rig.engine->reason(), "requested");
  std::vector<Extent> extents;
  for (std::uint64_t i = 0; i < 100; ++i) {
    extents.push_back({.offset_bytes = i * 30'000, .size_bytes = 648, .shard = 0});
  }
  const CheckedReads wanted(std::move(extents));
  Traffic before, after = {.bytes_read = 1, .reads = 1, .merged = 0};
  for (int round = 0; round < 60'000 && before.reads != after.reads; ++round) {
    if (round > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // until it is filled
    before = rig.engine->traffic();
    ASSERT_TRUE(rig.engine->read(wanted.reads()).ok());
    wanted.expect_bytes({&held});
    after = rig.engine->traffic();
  }
  EXPECT_EQ(before.reads, after.reads) << "the disk was not asked any more";
}

TEST(MemoryEngine, IsRefusedWhereTheDataDoesNotFit) {
  const TempFolder folder;
  const auto files = files_of({folder.write("a", pattern(3 * kMiB))});
  Budget budget(2 * kMiB);
  try {
    (void)open_engine(files, {.engine = EngineKind::memory, .cache = CacheMode::keep}, budget);
    FAIL() << "opened";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "engine memory: the data takes 3 MiB, but a memory of 2 MiB leaves 1.75 MiB for "
                 "it; use more memory or another engine");
  }
  EXPECT_EQ(budget.free_bytes(), 2 * kMiB);
}

TEST(MemoryEngine, IsChosenByItselfWhereTheDataFitsAndIsWelcome) {
  const TempFolder folder;
  const auto files = files_of({folder.write("a", pattern(kMiB))});
  Budget budget(16 * kMiB);
  EXPECT_EQ(open_engine(files, {.cache = CacheMode::keep}, budget)->name(), "memory");
  EXPECT_NE(open_engine(files, {.cache = CacheMode::keep}, budget, /*allow_memory=*/false)->name(),
            "memory");
  Budget small(kMiB);
  EXPECT_NE(open_engine(files, {.cache = CacheMode::keep}, small)->name(), "memory");
}

}  // namespace
}  // namespace lowtide::engine_cache_test

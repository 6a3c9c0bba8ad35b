#include "engine/memory_engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "engine/fill_race.h"
#include "engine/held_data.h"
#include "support/data_file.h"
#include "support/read_rig.h"

namespace lowtide::memory_engine_test {
namespace {

constexpr std::uint64_t kTile = HeldData::kTileBytes;
constexpr std::uint32_t kRow = 648;

// Serves sets at once from bytes in memory. A read that fills a tile waits until the test allows
// it.
class GatedSource final : public Engine {
 public:
  explicit GatedSource(std::string held) : held_(std::move(held)) {}

  // Lets the first so many tiles be filled.
  void allow(std::uint64_t tiles) {
    const std::lock_guard lock(mutex_);
    allowed_ = tiles;
    changed_.notify_all();
  }
  void fail_tiles() { fails_ = true; }
  // Rows that somebody else asked for.
  [[nodiscard]] std::uint64_t rows_read() const { return rows_; }
  // Reads of the filling that have begun.
  [[nodiscard]] std::uint64_t tiles_begun() const { return begun_; }

  void submit(ReadSet& set) noexcept override {
    Outcome outcome;
    const Extent& first = set.reads.front().from;
    if (first.size_bytes > kRow) {
      std::unique_lock lock(mutex_);
      ++begun_;
      changed_.wait(lock, [&] { return first.offset_bytes / kTile < allowed_; });
      if (fails_) outcome.err = EIO;
    } else {
      rows_ += set.reads.size();
    }
    for (std::uint32_t i = 0; i < set.reads.size() && outcome.ok(); ++i) {
      const Extent& from = set.reads[i].from;
      outcome.ended = from.end_bytes() > held_.size();
      outcome.read = i;
      if (outcome.ok()) {
        std::memcpy(set.reads[i].into, held_.data() + from.offset_bytes, from.size_bytes);
      }
    }
    set.done(outcome);
  }
  Prospect prospect() noexcept override { return {.resident = false, .gap_bytes = 4711}; }
  Traffic traffic() const noexcept override { return {}; }
  std::string name() const override { return "gated"; }
  std::string reason() const override { return "a test"; }

 private:
  const std::string held_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t allowed_ = 0;
  std::atomic<std::uint64_t> rows_{0}, begun_{0};
  std::atomic<bool> fails_{false};
};

class MemoryEngineTest : public testing::Test {
 protected:
  ~MemoryEngineTest() override { source_->allow(~std::uint64_t{0}); }

  // One row at the start of each of these tiles.
  [[nodiscard]] static CheckedReads rows_of(const std::vector<std::uint64_t>& tiles) {
    std::vector<Extent> extents;
    for (const std::uint64_t tile : tiles) {
      extents.push_back({.offset_bytes = tile * kTile + 7, .size_bytes = kRow, .shard = 0});
    }
    return CheckedReads(std::move(extents));
  }
  // Reads through submit(), as a loader does, and checks the bytes.
  void expect_rows(const CheckedReads& rows) {
    WaitedSet set(rows.reads());
    engine_->submit(set);
    EXPECT_TRUE(set.wait().ok());
    rows.expect_bytes({&held_});
    EXPECT_EQ(set.times(), 1);
  }
  // How many of these rows the source serves.
  std::uint64_t asked_for(const CheckedReads& rows) {
    const std::uint64_t before = source_->rows_read();
    expect_rows(rows);
    return source_->rows_read() - before;
  }
  void wait_until_asked_for(const CheckedReads& rows, std::uint64_t count) {
    while (asked_for(rows) != count) std::this_thread::yield();
  }

  const TempFolder folder_;
  const std::string held_ = pattern(5 * kTile + 777);
  Budget budget_{64 << 20};
  GatedSource* source_ = new GatedSource(held_);
  const std::unique_ptr<Engine> engine_ = make_memory_engine(
      *files_of({folder_.write("a", held_)}), std::unique_ptr<Engine>(source_), budget_, "a test");
};

TEST_F(MemoryEngineTest, NobodyWaitsForTheFilling) {
  engine_->expect_all();
  while (source_->tiles_begun() < 2) std::this_thread::yield();
  const CheckedReads rows = rows_of({4, 0, 2});
  EXPECT_EQ(asked_for(rows), 3U);
  EXPECT_TRUE(engine_->read(rows.reads()).ok());
  EXPECT_EQ(source_->rows_read(), 6U);
}

TEST_F(MemoryEngineTest, TakesWhatIsFilledAndTheRestFromTheSource) {
  engine_->expect_all();
  source_->allow(2);
  wait_until_asked_for(rows_of({0, 1}), 0);
  EXPECT_EQ(asked_for(rows_of({4, 0, 3, 1, 4})), 3U);
  EXPECT_EQ(engine_->prospect().gap_bytes, 4711U);
  EXPECT_FALSE(engine_->prospect().resident) << "the source decides until all is here";
  EXPECT_FALSE(engine_->prospect().held);
  source_->allow(6);
  wait_until_asked_for(rows_of({0, 1, 2, 3, 4}), 0);
  while (!engine_->prospect().held) std::this_thread::yield();
  EXPECT_TRUE(engine_->prospect().resident);
}

TEST_F(MemoryEngineTest, FillsOnlyOnceMuchIsAskedFor) {
  const CheckedReads rows = rows_of({0, 1, 2, 3});
  // A short read counts as 1 KiB.
  const std::uint64_t each = std::max<std::uint64_t>(kRow, 1024);
  const std::uint64_t enough = (held_.size() / 8 - 1) / (4 * each);
  for (std::uint64_t i = 0; i < enough; ++i) expect_rows(rows);
  EXPECT_EQ(source_->tiles_begun(), 0U);
  expect_rows(rows);
  while (source_->tiles_begun() == 0) std::this_thread::yield();
}

TEST_F(MemoryEngineTest, ReportsTheReadOfASplitSetThatFailed) {
  engine_->expect_all();
  source_->allow(1);
  wait_until_asked_for(rows_of({0}), 0);
  std::vector<Extent> extents(3, {.offset_bytes = 7, .size_bytes = kRow, .shard = 0});
  extents[2].offset_bytes = held_.size() - kRow + 1;
  const CheckedReads rows(std::move(extents));
  WaitedSet set(rows.reads());
  engine_->submit(set);
  const Outcome outcome = set.wait();
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.read, 2U);
}

TEST_F(MemoryEngineTest, GoesOnWithoutATileThatCannotBeRead) {
  source_->fail_tiles();
  engine_->expect_all();
  source_->allow(~std::uint64_t{0});
  EXPECT_EQ(asked_for(rows_of({0, 4})), 2U);
  EXPECT_FALSE(engine_->prospect().held);
}

// A source whose rows come so slowly that filling wins.
class SlowRows final : public Engine {
 public:
  SlowRows(std::string held, std::uint64_t fast_tiles)
      : held_(std::move(held)), fast_tiles_(fast_tiles) {}

  void allow(std::uint64_t tiles = ~std::uint64_t{0}) {
    const std::lock_guard lock(mutex_);
    fast_tiles_ = tiles;
    changed_.notify_all();
  }
  [[nodiscard]] std::uint64_t sets_of_rows() const { return sets_of_rows_; }

  void submit(ReadSet& set) noexcept override {
    const Extent& first = set.reads.front().from;
    if (first.size_bytes > kRow) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return first.offset_bytes / kTile < fast_tiles_; });
    } else {
      ++sets_of_rows_;
      // As long as everything so far has taken: then these rows came slower than what was filled.
      std::this_thread::sleep_for(std::chrono::nanoseconds(now_ns() - started_ns_));
    }
    for (const Read& read : set.reads) {
      std::memcpy(read.into, held_.data() + read.from.offset_bytes, read.from.size_bytes);
    }
    set.done({});
  }
  Prospect prospect() noexcept override { return {}; }
  Traffic traffic() const noexcept override { return {}; }
  std::string name() const override { return "slow"; }
  std::string reason() const override { return "a test"; }

 private:
  const std::string held_;
  const std::uint64_t started_ns_ = now_ns();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t fast_tiles_;
  std::atomic<std::uint64_t> sets_of_rows_{0};
};

// Ten tiles are filled at once; the others wait for allow().
class WaitingTest : public testing::Test {
 protected:
  WaitingTest() {
    engine_->expect_all();
    // More than FillRace needs to know.
    std::vector<Extent> extents;
    for (std::uint64_t i = 0; i < FillRace::kLeastFetchedBytes / kRow + 1; ++i) {
      extents.push_back({.offset_bytes = 12 * kTile + i, .size_bytes = kRow, .shard = 0});
    }
    CheckedReads many(std::move(extents));
    do {
      WaitedSet set(many.reads());
      engine_->submit(set);
      EXPECT_TRUE(set.wait().ok());
    } while (!engine_->prospect().held);
    sets_before_ = source_->sets_of_rows();
  }
  ~WaitingTest() override { source_->allow(); }

  const TempFolder folder_;
  const std::string held_ = pattern(16 * kTile);
  Budget budget_{64 << 20};
  SlowRows* source_ = new SlowRows(held_, 10);
  const std::unique_ptr<Engine> engine_ = make_memory_engine(
      *files_of({folder_.write("a", held_)}), std::unique_ptr<Engine>(source_), budget_, "a test");
  std::uint64_t sets_before_ = 0;
};

TEST_F(WaitingTest, ReadsWaitForTheFillingWhereTheSourceIsMuchSlower) {
  const CheckedReads rows({{.offset_bytes = 13 * kTile, .size_bytes = kRow, .shard = 0}});
  WaitedSet set(rows.reads());
  engine_->submit(set);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(set.times(), 0);
  source_->allow();
  EXPECT_TRUE(set.wait().ok());
  rows.expect_bytes({&held_});
  EXPECT_EQ(source_->sets_of_rows(), sets_before_);
}

TEST_F(WaitingTest, ASetThatWaitsIsCancelledBeforeTheFillingEnds) {
  const CheckedReads rows({{.offset_bytes = 15 * kTile, .size_bytes = kRow, .shard = 0}});
  WaitedSet set(rows.reads());
  engine_->submit(set);
  set.cancel();
  source_->allow(12);  // each tile that arrives looks for such sets; four are still missing
  EXPECT_TRUE(set.wait().cancelled);
  EXPECT_EQ(set.times(), 1);
}

TEST(FillRace, WaitsOnlyWhereFillingIsFasterByEnough) {
  const auto race = [](std::uint64_t filled, std::uint64_t fetched) {
    FillRace all;
    all.filling_starts(1000);
    all.fetch_starts(1000);
    all.filled(filled << 20, 2000);
    all.fetched(fetched << 20, 2000);
    return all;
  };
  EXPECT_FALSE(race(15, 4).worth_waiting(false)) << "too little is known";
  EXPECT_FALSE(race(100, 3).worth_waiting(false)) << "too little is known";
  EXPECT_TRUE(race(40, 20).worth_waiting(true));
  EXPECT_FALSE(race(40, 21).worth_waiting(true));
  EXPECT_TRUE(race(40, 80).worth_waiting(false));
  EXPECT_FALSE(race(40, 81).worth_waiting(false));
}

TEST(FillRace, DoesNotCountTheTimeOfASlowConsumer) {
  FillRace race;
  race.filling_starts(0);
  for (std::uint64_t i = 0; i < 8; ++i) {
    race.fetch_starts(i * 1000);
    race.fetched(4 << 20, i * 1000 + 10);
  }
  race.filled(64 << 20, 8000);
  EXPECT_FALSE(race.worth_waiting(false));
}

TEST(HeldData, LocatesEveryByteOfManyShardsOnce) {
  Shards shards;
  const std::vector<std::uint64_t> sizes{0, 5, 3 * kTile, 0, 0, kTile - 5, 1, 700'000, 0};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    shards.add({"/shard" + std::to_string(i), sizes[i], 0});
  }
  HeldData data(shards);
  std::vector<Read> reads;
  for (std::uint64_t tile = 0; tile < data.tiles(); ++tile) {
    const std::size_t before = reads.size();
    data.locate_tile(tile, reads);
    std::uint64_t bytes = 0;
    for (std::size_t i = before; i < reads.size(); ++i) bytes += reads[i].from.size_bytes;
    EXPECT_EQ(bytes, std::min(kTile, data.size_bytes() - tile * kTile)) << tile;
  }
  std::vector<std::uint64_t> reached(sizes.size(), 0);
  for (const Read& read : reads) {
    EXPECT_GT(read.from.size_bytes, 0U);
    EXPECT_EQ(read.from.offset_bytes, reached[read.from.shard]);
    reached[read.from.shard] = read.from.end_bytes();
  }
  EXPECT_EQ(reached, sizes);
}

TEST(HeldData, HasAnExtentOnceAllOfItsTilesAreFilled) {
  Shards shards;
  shards.add({"/a", 2 * kTile + 100, 0});
  shards.add({"/b", 0, 0});
  HeldData data(shards);
  ASSERT_EQ(data.tiles(), 3U);
  const auto has = [&](std::uint64_t offset, std::uint32_t size, std::uint32_t shard = 0) {
    return data.has({.offset_bytes = offset, .size_bytes = size, .shard = shard});
  };
  EXPECT_FALSE(has(0, 1));
  EXPECT_TRUE(has(0, 0, 1)) << "nothing is missing of an empty shard";
  data.tile_filled(1);
  EXPECT_TRUE(has(kTile, kTile));
  EXPECT_FALSE(has(kTile - 1, 2));
  EXPECT_FALSE(has(2 * kTile - 1, 2));
  data.tile_filled(2);
  EXPECT_TRUE(has(2 * kTile - 1, 101));
  EXPECT_FALSE(has(2 * kTile - 1, 102)) << "beyond the end of the shard";
  EXPECT_FALSE(data.whole());
  data.tile_filled(0);
  EXPECT_TRUE(data.whole());
  EXPECT_TRUE(has(0, 2 * kTile));
  EXPECT_FALSE(has(0, 1, 1));
}

}  // namespace
}  // namespace lowtide::memory_engine_test

#include "loader/lookahead.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "dataset/rows.h"
#include "loader/room.h"
#include "lowtide/error.h"
#include "support/fake_engine.h"
#include "support/read_rig.h"

namespace lowtide {
namespace {

using std::chrono::milliseconds;
constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kRows = 2003;
constexpr std::uint64_t kColumns = 12;  // of 4 bytes
constexpr std::uint64_t kRowBytes = kColumns * 4;
constexpr Prospect kHeld{.resident = true, .held = true, .gap_bytes = 0};
constexpr Prospect kOnDisk{.resident = false, .held = false, .gap_bytes = 1024 * 1024};
constexpr Prospect kInMemory{.resident = true, .held = false, .gap_bytes = 0};

Rows rows_of(bool fortran_order = false) {
  Layout layout;
  layout.dtype = DType::parse("<f4");
  layout.shape = {kRows, kColumns};
  layout.fortran_order = fortran_order;
  return Rows({{make_layout(std::move(layout), "data.npy"), "data.npy"}});
}

const std::string& held() {
  static const std::string bytes = pattern(kRows * kRowBytes);
  return bytes;
}

std::string row_in_c_order(std::uint64_t row, bool fortran_order) {
  if (!fortran_order) return held().substr(row * kRowBytes, kRowBytes);
  std::string text;
  for (std::uint64_t c = 0; c < kColumns; ++c) text += held().substr((c * kRows + row) * 4, 4);
  return text;
}

struct LoaderRig {
  explicit LoaderRig(std::uint64_t budget_bytes = 4 * kMiB, bool shuffle = true,
                     bool fortran_order = false)
      : fortran(fortran_order),
        rows(rows_of(fortran_order)),
        order(shuffle ? make_shuffle(kRows, 5) : make_sequential(kRows)),
        budget(budget_bytes) {}

  std::unique_ptr<Lookahead> load(std::uint64_t batch_size, std::uint64_t first_step = 0,
                                  Engine* other = nullptr) {
    schedule = {.size = kRows, .epoch = 1, .batch_size = batch_size};
    return std::make_unique<Lookahead>(
        LookaheadInputs{rows, *order, other != nullptr ? *other : fake, budget}, schedule,
        first_step);
  }
  void expect_batch(const Lease& lease, std::uint64_t step) const {
    ASSERT_EQ(lease.step, step);
    ASSERT_EQ(lease.epoch, 1U);
    std::vector<std::uint64_t> samples(schedule.count(step));
    order->fill(1, step * schedule.batch_size, samples);
    ASSERT_EQ(lease->samples, samples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::string row = row_in_c_order(samples[i], fortran);
      ASSERT_EQ(std::memcmp(lease->memory.data() + i * kRowBytes, row.data(), kRowBytes), 0)
          << "step " << step << ", row " << i;
    }
  }
  // Everything that is left, each batch checked.
  void drain(Lookahead& loader, std::uint64_t step = 0) const {
    for (; step < schedule.turns(); ++step) {
      bool timed_out = false;
      const auto lease = loader.next(std::chrono::minutes(1), &timed_out);
      ASSERT_TRUE(lease) << "step " << step << (timed_out ? " timed out" : "");
      expect_batch(*lease, step);
    }
    bool timed_out = true;
    EXPECT_FALSE(loader.next(milliseconds(0), &timed_out));
    EXPECT_FALSE(timed_out);
  }

  bool fortran;
  Rows rows;
  std::unique_ptr<Order> order;
  Budget budget;
  FakeEngine fake{{held()}};
  Schedule schedule;
};

TEST(Lookahead, DeliversEverySampleOnceWhateverTheOrderOfCompletion) {
  for (const bool shuffle : {true, false}) {
    for (const bool fortran_order : {false, true}) {
      for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
        for (const std::uint64_t batch_size : {1UL, 3UL, 100UL, kRows, 5 * kRows}) {
          SCOPED_TRACE("batch_size " + std::to_string(batch_size));
          LoaderRig rig(4 * kMiB, shuffle, fortran_order);
          rig.fake.set_prospect(prospect);
          rig.drain(*rig.load(batch_size));
          EXPECT_LE(rig.fake.most_reads_, Engine::kMaxReads);
          EXPECT_EQ(rig.budget.free_bytes(), rig.budget.limit_bytes());
        }
      }
    }
  }
}

TEST(Lookahead, WorksWithAnEngineThatEndsSetsAtOnce) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    LoaderRig rig;
    rig.fake.inline_ = true;
    rig.fake.set_prospect(prospect);
    rig.drain(*rig.load(100));
  }
}

TEST(Lookahead, WorksUnderEveryBudgetThatHoldsABatch) {
  const std::vector<Budget::Entry> needs =
      least_room(rows_of(), {.size = kRows, .batch_size = 100});
  std::uint64_t least = 0;
  for (const Budget::Entry& need : needs) least += need.bytes;
  for (const std::uint64_t budget_bytes :
       {least, least + 1, 2 * least, 5 * least, 300'000UL, 1'000'000UL, kMiB, 16 * kMiB}) {
    for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
      SCOPED_TRACE(std::to_string(budget_bytes));
      LoaderRig rig(budget_bytes);
      rig.fake.set_prospect(prospect);
      rig.drain(*rig.load(100));
    }
  }
}

TEST(Lookahead, SaysWhatItNeedsWhenTheBudgetIsTooSmall) {
  LoaderRig rig(4096);
  try {
    (void)rig.load(1000);
    FAIL() << "loaded";
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("memory: 4 KiB is too little: a batch of 1000 rows "), 0U) << text;
    EXPECT_NE(text.find(" + read plans "), std::string::npos) << text;
    EXPECT_NE(text.find("would do"), std::string::npos) << text;
  }
  EXPECT_EQ(rig.budget.free_bytes(), 4096U);
  LoaderRig plenty;
  plenty.drain(*plenty.load(~std::uint64_t{0}));  // no more than there are rows
}

TEST(Lookahead, FollowsAProspectThatChanges) {
  LoaderRig rig;
  const auto loader = rig.load(10);
  std::atomic<bool> ended{false};
  std::thread weather([&] {
    for (bool disk = true; !ended; disk = !disk) {
      rig.fake.set_prospect(disk ? kOnDisk : kInMemory);
      std::this_thread::yield();
    }
  });
  rig.drain(*loader);
  ended = true;
  weather.join();
}

TEST(Lookahead, StartsAtAnyStep) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const std::uint64_t first : {0, 1, 19, 20, 21}) {
      LoaderRig rig;
      rig.fake.set_prospect(prospect);
      rig.drain(*rig.load(100, first), first);
    }
  }
}

TEST(Lookahead, GivesAnErrorWithStepAndPathAgainAndAgain) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const bool inside_submit : {false, true}) {
      LoaderRig rig;
      rig.fake.inline_ = inside_submit;
      rig.fake.set_prospect(prospect);
      const std::uint64_t victim = 1234;
      Outcome failure;
      failure.err = EIO;
      rig.fake.fail_at(victim * kRowBytes, failure);
      const auto loader = rig.load(100);
      const std::uint64_t step = *rig.order->position_of(1, victim) / 100;
      std::string first;
      for (int i = 0; i < 50; ++i) {
        bool timed_out = false;
        try {
          const auto lease = loader->next(std::chrono::minutes(1), &timed_out);
          ASSERT_TRUE(lease);
          ASSERT_LT(lease->step, step);
        } catch (const IoError& error) {
          EXPECT_EQ(error.err, EIO);
          EXPECT_EQ(error.path, "data.npy");
          // Neighbours may have come in one read: it is named by its first row.
          const std::uint64_t named = error.offset_bytes.value() / kRowBytes;
          EXPECT_LE(named, victim);
          EXPECT_GT(named + 100, victim);
          const std::uint64_t named_step = *rig.order->position_of(1, named) / 100;
          EXPECT_TRUE(
              std::string(error.what()).ends_with("epoch 1, step " + std::to_string(named_step)))
              << error.what();
          if (first.empty()) first = error.what();
          EXPECT_EQ(error.what(), first);
        }
      }
      EXPECT_FALSE(first.empty());
    }
  }
}

TEST(Lookahead, SaysThatAFileEnded) {
  LoaderRig rig;
  Outcome failure;
  failure.ended = true;
  failure.found_bytes = 777;
  rig.fake.fail_at(0, failure);
  const auto loader = rig.load(kRows);
  bool timed_out = false;
  try {
    (void)loader->next(std::chrono::minutes(1), &timed_out);
    FAIL() << "delivered";
  } catch (const FormatError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("data.npy: the file was truncated since it was opened"), 0U) << text;
    EXPECT_NE(text.find("it ends at byte 777 (epoch 1, step 0)"), std::string::npos) << text;
  }
}

TEST(Lookahead, GivesUpAfterTheTimeoutAndGoesOnLater) {
  LoaderRig rig;
  rig.fake.hold();
  const auto loader = rig.load(100);
  for (int i = 0; i < 3; ++i) {
    bool timed_out = false;
    EXPECT_FALSE(loader->next(milliseconds(5), &timed_out));
    EXPECT_TRUE(timed_out);
  }
  rig.fake.release();
  rig.drain(*loader);
}

TEST(Lookahead, EndsAWaitingNextWhenCancelled) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    LoaderRig rig;
    rig.fake.set_prospect(prospect);
    rig.fake.hold();
    auto loader = rig.load(100);
    rig.fake.wait_for_sets(1);
    std::thread other([&] { loader->cancel(); });
    bool timed_out = false;
    EXPECT_FALSE(loader->next(std::chrono::minutes(1), &timed_out));
    EXPECT_FALSE(timed_out);
    other.join();
    EXPECT_FALSE(loader->next(std::chrono::minutes(1), &timed_out)) << "and stays so";
    EXPECT_FALSE(timed_out);
    rig.fake.release();
  }
}

TEST(Lookahead, WaitsInItsDestructorForReadsThatFly) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    LoaderRig rig;
    rig.fake.set_prospect(prospect);
    rig.fake.hold();
    auto loader = rig.load(100);
    rig.fake.wait_for_sets(1);
    std::atomic<bool> destroyed{false};
    std::thread ender([&] {
      loader.reset();
      destroyed = true;
    });
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_FALSE(destroyed) << "a read is still on its way into its memory";
    rig.fake.release();
    ender.join();
    EXPECT_EQ(rig.budget.free_bytes(), rig.budget.limit_bytes());
  }
}

TEST(Lookahead, GoesOnForAConsumerThatKeepsEverything) {
  for (const std::uint64_t budget_bytes : {100'000UL, 4 * kMiB}) {
    LoaderRig rig(budget_bytes);
    const auto loader = rig.load(50);
    std::vector<Lease> kept;
    for (std::uint64_t step = 0; step < rig.schedule.turns(); ++step) {
      bool timed_out = false;
      auto lease = loader->next(std::chrono::minutes(1), &timed_out);
      ASSERT_TRUE(lease) << step;
      kept.push_back(std::move(*lease));
    }
    EXPECT_GT(loader->pool()->held_bytes(), 0U);
    for (std::uint64_t step = 0; step < kept.size(); ++step) rig.expect_batch(kept[step], step);
    kept.clear();
    EXPECT_EQ(loader->pool()->held_bytes(), 0U);
  }
}

TEST(Lookahead, LetsLeasesOutliveIt) {
  LoaderRig rig;
  auto loader = rig.load(50);
  bool timed_out = false;
  const auto lease = loader->next(std::chrono::minutes(1), &timed_out);
  loader.reset();
  ASSERT_TRUE(lease);
  rig.expect_batch(*lease, 0);
}

TEST(Lookahead, LooksFarAheadOnlyWhereNeighboursMerge) {
  // Batches of one row: a window fetches many of them with one set, and so does a group of cached
  // batches; what we hold ourselves is copied batch by batch.
  LoaderRig held, near, far;
  held.fake.set_prospect(kHeld);
  held.drain(*held.load(1));
  near.drain(*near.load(1));
  far.fake.set_prospect(kOnDisk);
  far.drain(*far.load(1));
  EXPECT_EQ(held.fake.submitted(), kRows);
  EXPECT_LT(near.fake.submitted(), 100U);
  EXPECT_LT(far.fake.submitted(), 100U);
}

TEST(Lookahead, TellsTheEngineWhenMostOfTheDataWillBeRead) {
  LoaderRig many, one;
  many.drain(*many.load(10));
  EXPECT_EQ(many.fake.expected_all_, 1);
  one.drain(*one.load(kRows));
  EXPECT_EQ(one.fake.expected_all_, 0);
}

// Takes its time to tell its size, so that two loaders measure their room at once.
class SlowRows final : public Dataset {
 public:
  std::uint64_t size() const noexcept override { return rows_.size(); }
  std::uint64_t sample_bytes() const noexcept override {
    std::this_thread::sleep_for(milliseconds(1));
    return rows_.sample_bytes();
  }
  std::uint64_t parts() const noexcept override { return 1; }
  std::uint64_t reads_per_part() const noexcept override { return 1; }
  std::uint64_t data_bytes() const noexcept override { return rows_.data_bytes(); }
  const std::string& path(std::uint32_t shard) const noexcept override { return rows_.path(shard); }
  void locate(std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override {
    rows_.locate(part, samples, targets, out);
  }

 private:
  Rows rows_ = rows_of();
};

TEST(Lookahead, SharesABudgetWithOthersMadeAtTheSameTime) {
  LoaderRig rig(2 * kMiB);
  const SlowRows slow;
  rig.schedule = {.size = kRows, .epoch = 1, .batch_size = 500};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      try {
        const Lookahead loader({slow, *rig.order, rig.fake, rig.budget}, rig.schedule, 4);
      } catch (const std::invalid_argument&) {
        ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0) << "each by itself fits, and what is left is shared";
}

// Rows that are delivered backwards, each byte turned over: what deliver() makes is not what was
// read. Row `poison` cannot be delivered.
class TurnedRows final : public Dataset {
 public:
  explicit TurnedRows(std::uint64_t poison_row = kRows) : poison(poison_row) {}

  std::uint64_t size() const noexcept override { return rows_.size(); }
  std::uint64_t sample_bytes() const noexcept override { return rows_.sample_bytes(); }
  std::uint64_t parts() const noexcept override { return 1; }
  std::uint64_t reads_per_part() const noexcept override { return 1; }
  std::uint64_t data_bytes() const noexcept override { return rows_.data_bytes(); }
  const std::string& path(std::uint32_t shard) const noexcept override { return rows_.path(shard); }
  void locate(std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override {
    rows_.locate(part, samples, targets, out);
  }
  bool as_read() const noexcept override { return false; }
  std::uint64_t batch_bytes(std::uint64_t samples) const override {
    return samples * kRowBytes + 1;  // and how many, so that it is no multiple of a row
  }
  void deliver(std::span<const std::uint64_t> samples, std::span<const std::byte* const> staged,
               std::byte* out) const override {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i] == poison) throw std::invalid_argument("row " + std::to_string(poison));
      for (std::size_t b = 0; b < kRowBytes; ++b) {
        out[(i + 1) * kRowBytes - 1 - b] = ~staged[i][b];
      }
    }
    out[samples.size() * kRowBytes] = static_cast<std::byte>(samples.size());
  }

  const std::uint64_t poison;

 private:
  Rows rows_ = rows_of();
};

struct TurnedRig {
  explicit TurnedRig(const Prospect& prospect, std::uint64_t poison = kRows) : rows(poison) {
    fake.set_prospect(prospect);
  }
  std::unique_ptr<Lookahead> load(const Schedule& wanted, std::uint64_t most_ahead = 0) {
    schedule = wanted;
    return std::make_unique<Lookahead>(LookaheadInputs{rows, *order, fake, budget}, schedule, 0,
                                       most_ahead);
  }
  void expect_next(Lookahead& loader, std::uint64_t turn) const {
    bool timed_out = false;
    const auto lease = loader.next(std::chrono::minutes(1), &timed_out);
    ASSERT_TRUE(lease) << "turn " << turn;
    const Schedule::Turn at = schedule.at(turn);
    ASSERT_EQ(lease->epoch, at.epoch);
    ASSERT_EQ(lease->step, at.step);
    std::vector<std::uint64_t> samples(schedule.count(turn));
    schedule.fill(*order, turn, samples);
    ASSERT_EQ((*lease)->samples, samples);
    const std::byte* out = (*lease)->memory.data();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::string row = row_in_c_order(samples[i], false);
      for (std::size_t b = 0; b < kRowBytes; ++b) {
        ASSERT_EQ(out[(i + 1) * kRowBytes - 1 - b], ~static_cast<std::byte>(row[b]));
      }
    }
    ASSERT_EQ(out[samples.size() * kRowBytes], static_cast<std::byte>(samples.size()));
  }

  TurnedRows rows;
  std::unique_ptr<Order> order = make_shuffle(kRows, 5);
  Budget budget{4 * kMiB};
  FakeEngine fake{{held()}};
  Schedule schedule;
};

TEST(Lookahead, MakesBatchesOverTheSameWayWhereverTheyComeFrom) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const std::uint64_t batch_size : {1UL, 7UL, 100UL, kRows}) {
      for (const bool inside_submit : {false, true}) {
        TurnedRig rig(prospect);
        rig.fake.inline_ = inside_submit;
        const auto loader = rig.load({.size = kRows, .batch_size = batch_size});
        for (std::uint64_t turn = 0; turn < rig.schedule.turns(); ++turn) {
          rig.expect_next(*loader, turn);
        }
        bool timed_out = true;
        EXPECT_FALSE(loader->next(milliseconds(0), &timed_out));
      }
    }
  }
}

TEST(Lookahead, GoesOnOverEpochsWithoutEnd) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const bool drop_last : {false, true}) {
      TurnedRig rig(prospect);
      const auto loader = rig.load({.size = kRows,
                                    .epoch = 3,
                                    .batch_size = 90,
                                    .rank = 0,
                                    .world_size = 2,
                                    .drop_last = drop_last,
                                    .epochs = Schedule::kForever,
                                    .position = 300,
                                    .step = 2,
                                    .skips = {{3, 480, 660}, {5, 0, 1800}}});
      for (std::uint64_t turn = 0; turn < 60; ++turn) rig.expect_next(*loader, turn);
    }
  }
}

TEST(Lookahead, GivesAnErrorOfDeliverWithItsStepAgainAndAgain) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    TurnedRig rig(prospect, 1234);
    const auto loader = rig.load({.size = kRows, .epoch = 1, .batch_size = 50});
    const std::uint64_t step = *rig.order->position_of(1, 1234) / 50;
    int errors = 0;
    for (int i = 0; i < 60; ++i) {
      bool timed_out = false;
      try {
        const auto lease = loader->next(std::chrono::minutes(1), &timed_out);
        ASSERT_TRUE(lease);
        ASSERT_LT(lease->step, step);
        ASSERT_EQ(errors, 0);
      } catch (const std::invalid_argument& error) {
        EXPECT_EQ(error.what(), "row 1234 (epoch 1, step " + std::to_string(step) + ")");
        ++errors;
      }
    }
    EXPECT_GT(errors, 10);
  }
}

TEST(Lookahead, ReadsNoFurtherAheadThanItMay) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const std::uint64_t most_ahead : {1, 2, 3}) {
      TurnedRig rig(prospect);
      const auto loader = rig.load({.size = kRows, .batch_size = 50}, most_ahead);
      rig.expect_next(*loader, 0);
      std::this_thread::sleep_for(milliseconds(20));
      // A batch is one set of 50 reads here; a few may have been read together.
      EXPECT_LE(rig.fake.submitted(), 2 * (most_ahead + 2));
      for (std::uint64_t turn = 1; turn < rig.schedule.turns(); ++turn) {
        rig.expect_next(*loader, turn);
      }
    }
  }
}

class LoaderOverFiles : public testing::TestWithParam<EngineCase> {};

TEST_P(LoaderOverFiles, DeliversTheBytesOfTheFile) {
  if (const std::string why = why_not(GetParam().kind); !why.empty()) GTEST_SKIP() << why;
  const TempFolder folder;
  const std::string path = folder.write("data.npy", held());
  for (const bool shuffle : {true, false}) {
    for (const bool fortran_order : {false, true}) {
      evict(path);
      LoaderRig rig(16 * kMiB, shuffle, fortran_order);
      const EngineRig files(files_of({path}), GetParam(), 4 * kMiB);
      rig.drain(*rig.load(64, 0, files.engine.get()));
      auto abandoned = rig.load(64, 3, files.engine.get());  // destroyed while its reads fly
      abandoned.reset();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryEngine, LoaderOverFiles, testing::ValuesIn(every_engine()),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace lowtide

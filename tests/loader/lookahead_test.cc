#include "loader/lookahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "loader/room.h"
#include "support/lookahead_rig.h"
#include "support/read_rig.h"

namespace lowtide::lookahead_test {
namespace {

using std::chrono::milliseconds;

TEST(Lookahead, DeliversEverySampleOnceWhateverTheOrderOfCompletion) {
  for (const bool shuffle : {true, false}) {
    for (const bool fortran_order : {false, true}) {
      for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
        for (const std::uint64_t batch_size : {1UL, 3UL, 100UL, kRows, 5 * kRows}) {
          SCOPED_TRACE("batch_size " + std::to_string(batch_size));
          LookaheadRig rig(4 * kMiB, shuffle, fortran_order);
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
    LookaheadRig rig;
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
      LookaheadRig rig(budget_bytes);
      rig.fake.set_prospect(prospect);
      rig.drain(*rig.load(100));
    }
  }
}

TEST(Lookahead, SaysWhatItNeedsWhenTheBudgetIsTooSmall) {
  LookaheadRig rig(4096);
  try {
    (void)rig.load(1000);
    FAIL() << "loaded";
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("memory: 4 KiB is too small: "), 0U) << text;
    EXPECT_NE(text.find(" for a batch of 1000 rows + "), std::string::npos) << text;
    EXPECT_NE(text.find(" for read plans"), std::string::npos) << text;
    EXPECT_NE(text.find("; use at least "), std::string::npos) << text;
  }
  EXPECT_EQ(rig.budget.free_bytes(), 4096U);
  LookaheadRig plenty;
  plenty.drain(*plenty.load(~std::uint64_t{0}));  // no more than there are rows
}

TEST(Lookahead, FollowsAProspectThatChanges) {
  LookaheadRig rig;
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
      LookaheadRig rig;
      rig.fake.set_prospect(prospect);
      rig.drain(*rig.load(100, first), first);
    }
  }
}

TEST(Lookahead, LooksFarAheadOnlyWhereNeighboursMerge) {
  // Batches of one row: a window fetches many of them with one set, and so does a group of cached
  // batches; what we hold ourselves is copied batch by batch.
  LookaheadRig held, near, far;
  held.fake.set_prospect(kHeld);
  held.drain(*held.load(1));
  near.drain(*near.load(1));
  far.fake.set_prospect(kOnDisk);
  far.drain(*far.load(1));
  EXPECT_EQ(held.fake.submitted(), kRows);
  EXPECT_LT(near.fake.submitted(), 100U);
  EXPECT_LT(far.fake.submitted(), 100U);
}

TEST(Lookahead, ReadsNothingBeforeTheFirstBatchIsWanted) {
  LookaheadRig rig;
  const auto loader = rig.load(10);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_EQ(rig.fake.submitted(), 0U);
  EXPECT_EQ(rig.fake.expected_all_, 0);
  rig.drain(*loader);
  EXPECT_GT(rig.fake.submitted(), 0U);
  const auto cancelled = rig.load(10);
  const std::size_t before = rig.fake.submitted();
  cancelled->cancel();
  EXPECT_FALSE(cancelled->next(std::chrono::minutes(1)).value());
  EXPECT_EQ(rig.fake.submitted(), before);
}

TEST(Lookahead, TellsTheEngineWhenMostOfTheDataWillBeRead) {
  LookaheadRig many, one;
  many.drain(*many.load(10));
  EXPECT_EQ(many.fake.expected_all_, 1);
  one.drain(*one.load(kRows));
  EXPECT_EQ(one.fake.expected_all_, 0);
}

// Takes its time to tell its size, so that two loaders measure their room at once.
class SlowRows final : public OtherRows {
 public:
  std::uint64_t sample_bytes() const noexcept override {
    std::this_thread::sleep_for(milliseconds(1));
    return OtherRows::sample_bytes();
  }
};

TEST(Lookahead, SharesABudgetWithOthersMadeAtTheSameTime) {
  LookaheadRig rig(2 * kMiB);
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

class LoaderOverFiles : public testing::TestWithParam<EngineCase> {};

TEST_P(LoaderOverFiles, DeliversTheBytesOfTheFile) {
  if (const std::string why = why_not(GetParam().kind); !why.empty()) GTEST_SKIP() << why;
  const TempFolder folder;
  const std::string path = folder.write("data.npy", held());
  for (const bool shuffle : {true, false}) {
    for (const bool fortran_order : {false, true}) {
      evict(path);
      LookaheadRig rig(16 * kMiB, shuffle, fortran_order);
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
}  // namespace lowtide::lookahead_test

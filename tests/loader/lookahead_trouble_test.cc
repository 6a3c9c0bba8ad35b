// Reads that fail, a consumer that waits, goes or keeps everything.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lowtide/error.h"
#include "support/lookahead_rig.h"

namespace lowtide::lookahead_trouble_test {
namespace {

using std::chrono::milliseconds;

TEST(Lookahead, GivesAnErrorWithStepAndPathUntilTheReadSucceeds) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const bool inside_submit : {false, true}) {
      LookaheadRig rig;
      rig.fake.inline_ = inside_submit;
      rig.fake.set_prospect(prospect);
      const std::uint64_t victim = 1234;
      Outcome failure;
      failure.err = EIO;
      rig.fake.fail_at(victim * kRowBytes, failure);
      const auto loader = rig.load(100);
      const std::uint64_t step = *rig.order->position_of(1, victim) / 100;
      int errors = 0;
      for (int i = 0; i < 50; ++i) {
        try {
          const Batch batch = loader->next(std::chrono::minutes(1)).value();
          ASSERT_TRUE(batch);
          ASSERT_LT(batch.step(), step);
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
          ++errors;
        }
      }
      EXPECT_GT(errors, 10);
      // Tried again, and the disk is well: nothing is lost.
      rig.fake.fail_at(~std::uint64_t{0}, failure);
      const Batch batch = loader->next(std::chrono::minutes(1)).value();
      ASSERT_TRUE(batch);
      EXPECT_LE(batch.step(), step);
      rig.drain(*loader, batch.step() + 1);
    }
  }
}

// Reads until row `victim` fails; all batches before its step must have come.
void expect_batches_before(std::uint64_t victim, bool shuffle, const Prospect& prospect) {
  LookaheadRig rig(4 * kMiB, shuffle);
  rig.fake.set_prospect(prospect);
  Outcome failure;
  failure.err = EIO;
  rig.fake.fail_at(victim * kRowBytes, failure);
  const auto loader = rig.load(10);
  const std::uint64_t last = *rig.order->position_of(1, victim) / 10;
  std::uint64_t step = 0;
  try {
    for (;; ++step) {
      const Batch batch = loader->next(std::chrono::minutes(1)).value();
      ASSERT_TRUE(batch);
      rig.expect_batch(batch, step);
    }
  } catch (const IoError& error) {
    EXPECT_EQ(error.err, EIO);
  }
  EXPECT_EQ(step, last) << "row " << victim << (shuffle ? ", shuffled" : ", in order");
  rig.fake.fail_at(~std::uint64_t{0}, failure);
  rig.drain(*loader, step);
}

TEST(Lookahead, DeliversTheBatchesBeforeAFailedReadFirst) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const bool shuffle : {true, false}) {
      for (const std::uint64_t victim : {0, 15, 77, 642, 1234, 1999}) {
        expect_batches_before(victim, shuffle, prospect);
      }
    }
  }
}

TEST(Lookahead, SaysThatAFileEnded) {
  LookaheadRig rig;
  Outcome failure;
  failure.ended = true;
  failure.found_bytes = 777;
  rig.fake.fail_at(0, failure);
  const auto loader = rig.load(kRows);
  try {
    (void)loader->next(std::chrono::minutes(1));
    FAIL() << "delivered";
  } catch (const FormatError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find("data.npy: the file was truncated since it was opened"), 0U) << text;
    EXPECT_NE(text.find("it ends at byte 777 (epoch 1, step 0)"), std::string::npos) << text;
  }
}

TEST(Lookahead, GivesUpAfterTheTimeoutAndGoesOnLater) {
  LookaheadRig rig;
  rig.fake.hold();
  const auto loader = rig.load(100);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(loader->next(milliseconds(5)).has_value());
  }
  rig.fake.release();
  rig.drain(*loader);
}

TEST(Lookahead, EndsAWaitingNextWhenCancelled) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    LookaheadRig rig;
    rig.fake.set_prospect(prospect);
    rig.fake.hold();
    auto loader = rig.load(100);
    std::thread other([&] {
      rig.fake.wait_for_sets(1);
      loader->cancel();
    });
    EXPECT_FALSE(loader->next(std::chrono::minutes(1)).value());
    other.join();
    EXPECT_FALSE(loader->next(std::chrono::minutes(1)).value()) << "and stays so";
    rig.fake.release();
  }
}

TEST(Lookahead, WaitsInItsDestructorForReadsThatFly) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    LookaheadRig rig;
    rig.fake.set_prospect(prospect);
    rig.fake.hold();
    auto loader = rig.load(100);
    EXPECT_FALSE(loader->next(milliseconds(0)));  // starts the reading
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
    LookaheadRig rig(budget_bytes);
    const auto loader = rig.load(50);
    std::vector<Batch> kept;
    for (std::uint64_t step = 0; step < rig.schedule.turns(); ++step) {
      Batch batch = loader->next(std::chrono::minutes(1)).value();
      ASSERT_TRUE(batch) << step;
      kept.push_back(std::move(batch));
    }
    EXPECT_GT(loader->pool()->held_bytes(), 0U);
    for (std::uint64_t step = 0; step < kept.size(); ++step) rig.expect_batch(kept[step], step);
    kept.clear();
    EXPECT_EQ(loader->pool()->held_bytes(), 0U);
  }
}

TEST(Lookahead, LetsLeasesOutliveIt) {
  LookaheadRig rig;
  auto loader = rig.load(50);
  const Batch batch = loader->next(std::chrono::minutes(1)).value();
  loader.reset();
  ASSERT_TRUE(batch);
  rig.expect_batch(batch, 0);
}

}  // namespace
}  // namespace lowtide::lookahead_trouble_test

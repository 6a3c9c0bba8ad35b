// Several loaders under one budget: look-ahead is given back and taken again.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "loader/room.h"
#include "lowtide/error.h"
#include "support/lookahead_rig.h"

namespace lowtide::lookahead_share_test {
namespace {

std::uint64_t least_bytes(std::uint64_t batch_size) {
  std::uint64_t bytes = 0;
  for (const Budget::Entry& need :
       least_room(rows_of(), {.size = kRows, .epoch = 1, .batch_size = batch_size})) {
    bytes += need.bytes;
  }
  return bytes;
}

std::uint64_t ahead_bytes(const Budget& budget) {
  std::uint64_t bytes = 0;
  for (const Budget::Entry& claim : budget.claims()) {
    if (claim.what == "batches ahead") bytes += claim.bytes;
  }
  return bytes;
}

TEST(Lookahead, GivesBackWhatAnotherNeeds) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const std::uint64_t parts : {2UL, 3UL, 10UL}) {
      LookaheadRig rig(parts * least_bytes(100) + 64);
      rig.fake.set_prospect(prospect);
      std::vector<std::unique_ptr<Lookahead>> loaders;
      for (std::uint64_t i = 0; i < parts; ++i) {
        loaders.push_back(rig.load(100));
        const Batch batch = loaders.back()->next(std::chrono::minutes(1)).value();
        ASSERT_TRUE(batch);
        rig.expect_batch(batch, 0);
      }
      EXPECT_THROW((void)rig.load(100), std::invalid_argument);
      for (const auto& loader : loaders) rig.drain(*loader, 1);
      loaders.clear();
      EXPECT_EQ(rig.budget.free_bytes(), rig.budget.limit_bytes());
    }
  }
}

TEST(Lookahead, TakesMoreAgainWhenAnotherHasGone) {
  for (const Prospect& prospect : {kInMemory, kOnDisk}) {
    LookaheadRig rig(4 * least_bytes(10));
    rig.fake.set_prospect(prospect);
    const auto first = rig.load(10);
    EXPECT_EQ(ahead_bytes(rig.budget), 0U) << "it has not started";
    rig.expect_batch(first->next(std::chrono::minutes(1)).value(), 0);
    const std::uint64_t alone = ahead_bytes(rig.budget);
    const Claim claim = rig.budget.claim(rig.budget.claimable_bytes(), "all there is");
    EXPECT_EQ(ahead_bytes(rig.budget), 0U);
    std::uint64_t step = 1;
    const auto take = [&] {
      const Batch batch = first->next(std::chrono::minutes(1)).value();
      ASSERT_TRUE(batch);
      rig.expect_batch(batch, step++);
    };
    for (int i = 0; i < 20; ++i) take();
    EXPECT_EQ(ahead_bytes(rig.budget), 0U);
    const_cast<Claim&>(claim).release();
    for (int i = 0; i < 40; ++i) take();
    EXPECT_EQ(ahead_bytes(rig.budget), alone);
    rig.drain(*first, step);
  }
}

TEST(Lookahead, DeliversAllWhileOthersComeAndGo) {
  for (const Prospect& prospect : {kInMemory, kOnDisk}) {
    LookaheadRig rig(6 * least_bytes(20));
    rig.fake.set_prospect(prospect);
    const auto steady = rig.load(20);
    std::thread visitors([&] {
      for (int i = 0; i < 50; ++i) {
        const auto visitor = std::make_unique<Lookahead>(
            LookaheadInputs{rig.rows, *rig.order, rig.fake, rig.budget}, rig.schedule, 0);
        for (int step = 0; step < i % 5; ++step) {
          const Batch batch = visitor->next(std::chrono::minutes(1)).value();
          EXPECT_TRUE(batch);
        }
      }
    });
    rig.drain(*steady);
    visitors.join();
  }
}

TEST(Lookahead, GivesBackAlsoWhenItWasCancelledOrHasFailed) {
  LookaheadRig rig(2 * least_bytes(100));
  const auto cancelled = rig.load(100);
  rig.expect_batch(cancelled->next(std::chrono::minutes(1)).value(), 0);
  cancelled->cancel();
  Outcome failure;
  failure.err = EIO;
  rig.fake.fail_at(0, failure);
  const auto failed = rig.load(100);
  EXPECT_THROW(rig.drain(*failed), IoError);
  const Claim claim = rig.budget.claim(rig.budget.claimable_bytes(), "all there is");
  EXPECT_EQ(ahead_bytes(rig.budget), 0U);
}

TEST(Lookahead, ReadsWideRowsInFortranOrderInFewSets) {
  constexpr std::uint64_t kWide = 5000;
  const Rows rows = rows_of(/*fortran_order=*/true, 4, kWide);
  const std::string bytes = pattern(4 * kWide * 4);
  for (const Prospect& prospect : {kInMemory, kOnDisk}) {
    FakeEngine fake{{bytes}};
    fake.set_prospect(prospect);
    Budget budget(4 * kMiB);
    const auto order = make_sequential(4);
    Lookahead loader({rows, *order, fake, budget}, {.size = 4, .batch_size = 1}, 0);
    for (std::uint64_t row = 0; row < 4; ++row) {
      const Batch batch = loader.next(std::chrono::minutes(1)).value();
      ASSERT_TRUE(batch);
      for (std::uint64_t column = 0; column < kWide; ++column) {
        ASSERT_EQ(std::memcmp(batch.column(0).data() + column * 4,
                              bytes.data() + (column * 4 + row) * 4, 4),
                  0);
      }
    }
    EXPECT_LE(fake.submitted(), 4 * (kWide / 512 + 1));
  }
}

}  // namespace
}  // namespace lowtide::lookahead_share_test

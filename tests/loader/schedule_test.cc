#include "loader/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/schedule_samples.h"

namespace lowtide::schedule_test {
namespace {

TEST(Schedule, GivesEveryPositionToOneStepOfOneRank) {
  for (std::uint64_t size = 0; size < 60; ++size) {
    const auto order = make_sequential(size);
    for (const std::uint64_t batch_size : {1, 2, 3, 7, 59, 60, 1000}) {
      for (const std::uint64_t world_size : {1, 2, 3, 8}) {
        std::vector<int> times(size, 0);
        for (std::uint64_t rank = 0; rank < world_size; ++rank) {
          const Schedule schedule{
              .size = size, .batch_size = batch_size, .rank = rank, .world_size = world_size};
          for (std::uint64_t turn = 0; turn < schedule.turns(); ++turn) {
            ASSERT_GT(schedule.count(turn), 0U);
            ASSERT_LE(schedule.count(turn), batch_size);
            for (const std::uint64_t sample : samples_of(schedule, *order, turn)) {
              ++times.at(sample);
            }
          }
        }
        EXPECT_EQ(times, std::vector<int>(size, 1))
            << size << " in " << batch_size << " over " << world_size;
      }
    }
  }
}

TEST(Schedule, DropsTheLastSoThatAllRanksHaveTheSameFullSteps) {
  for (std::uint64_t size = 0; size < 60; ++size) {
    for (const std::uint64_t world_size : {1, 2, 3}) {
      for (std::uint64_t rank = 0; rank < world_size; ++rank) {
        const Schedule schedule{.size = size,
                                .batch_size = 7,
                                .rank = rank,
                                .world_size = world_size,
                                .drop_last = true};
        EXPECT_EQ(schedule.turns(), size / 7 / world_size);
        for (std::uint64_t turn = 0; turn < schedule.turns(); ++turn) {
          EXPECT_EQ(schedule.count(turn), 7U);
        }
      }
    }
  }
}

TEST(Schedule, StandsTheLargestNumbers) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const Schedule one{.size = std::uint64_t{1} << 63, .batch_size = kHuge};
  EXPECT_EQ(one.turns(), 1U);
  EXPECT_EQ(one.count(0), std::uint64_t{1} << 63);
  const Schedule none{.size = 10, .batch_size = kHuge, .rank = 1, .world_size = 2};
  EXPECT_EQ(none.turns(), 0U);
  const Schedule forever{
      .size = std::uint64_t{1} << 62, .drop_last = true, .epochs = Schedule::kForever};
  EXPECT_EQ(forever.turns(), Schedule::kForever);
  EXPECT_EQ(forever.at(std::uint64_t{1} << 63).epoch, 2U);
}

TEST(Schedule, GoesOnOverEpochsAndNamesStepsWithinThem) {
  const Schedule schedule{
      .size = 10, .epoch = 3, .batch_size = 2, .world_size = 2, .drop_last = true, .epochs = 3};
  ASSERT_EQ(schedule.turns(), 6U);
  for (std::uint64_t turn = 0; turn < 6; ++turn) {
    EXPECT_EQ(schedule.at(turn).epoch, 3 + turn / 2);
    EXPECT_EQ(schedule.at(turn).step, turn % 2);
    EXPECT_EQ(schedule.at(turn).position, turn % 2 * 4);
    EXPECT_EQ(schedule.at(turn).left, 2 - turn % 2);
  }
  EXPECT_EQ(schedule.at(6).epoch, 6U);
  EXPECT_EQ(schedule.at(6).position, 0U);
}

TEST(Schedule, KeepsEveryPositionOnceWhenRanksAndBatchesChangeInTheEpoch) {
  constexpr std::uint64_t kSize = 1000;
  const auto order = make_shuffle(kSize, 5);
  std::vector<int> times(kSize, 0);
  std::uint64_t position = 0, step = 0;
  struct Leg {
    std::uint64_t world_size, batch_size, steps;
  };
  for (const Leg& leg : {Leg{4, 7, 9}, Leg{2, 13, 11}, Leg{3, 5, 1000}}) {
    Schedule::Turn next;
    for (std::uint64_t rank = 0; rank < leg.world_size; ++rank) {
      const Schedule schedule{.size = kSize,
                              .batch_size = leg.batch_size,
                              .rank = rank,
                              .world_size = leg.world_size,
                              .drop_last = true,
                              .position = position,
                              .step = step};
      const std::uint64_t steps = std::min(leg.steps, schedule.turns());
      EXPECT_EQ(schedule.turns(), (kSize - position) / (leg.world_size * leg.batch_size));
      for (std::uint64_t turn = 0; turn < steps; ++turn) {
        EXPECT_EQ(schedule.at(turn).step, step + turn);
        for (const std::uint64_t sample : samples_of(schedule, *order, turn)) ++times.at(sample);
      }
      next = schedule.at(steps);
    }
    position = next.position;
    step = next.step;
  }
  const auto left_out = std::count(times.begin(), times.end(), 0);
  EXPECT_EQ(std::count(times.begin(), times.end(), 1), kSize - left_out);
  EXPECT_LT(left_out, 3 * 5);
}

TEST(Schedule, SkipsStepsAndGoesOnWithTheNextName) {
  const auto order = make_sequential(40);
  const Schedule schedule{.size = 40,
                          .batch_size = 2,
                          .rank = 1,
                          .world_size = 2,
                          .drop_last = true,
                          .epochs = 2,
                          .skips = {{0, 8, 16}, {1, 0, 4}}};
  ASSERT_EQ(schedule.turns(), 8U + 9U);
  std::vector<std::uint64_t> steps;
  for (std::uint64_t turn = 0; turn < schedule.turns(); ++turn) {
    const Schedule::Turn at = schedule.at(turn);
    steps.push_back(at.step);
    EXPECT_EQ(at.position, at.step * 4);
    EXPECT_EQ(samples_of(schedule, *order, turn), (Samples{at.step * 4 + 2, at.step * 4 + 3}));
  }
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{0, 1, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Schedule, LeavesOutWhatWasSkippedAlsoUnderOtherSizes) {
  const auto order = make_sequential(100);
  for (const std::uint64_t start : {0, 13, 25, 33, 60}) {
    for (const std::uint64_t batch_size : {1, 3, 7}) {
      std::vector<int> times(100, 0);
      for (const std::uint64_t rank : {0, 1}) {
        const Schedule schedule{.size = 100,
                                .batch_size = batch_size,
                                .rank = rank,
                                .world_size = 2,
                                .position = start,
                                .skips = {{0, 20, 30}, {0, 30, 35}, {0, 90, 100}, {7, 1, 2}}};
        for (std::uint64_t turn = 0; turn < schedule.turns(); ++turn) {
          for (const std::uint64_t sample : samples_of(schedule, *order, turn)) ++times.at(sample);
        }
      }
      for (std::uint64_t at = 0; at < 100; ++at) {
        const bool wanted = at >= start && !(at >= 20 && at < 35) && at < 90;
        EXPECT_EQ(times[at], wanted ? 1 : 0) << at << " from " << start << " by " << batch_size;
      }
    }
  }
}

TEST(Schedule, LeavesNothingOutBetweenEpochsOfAContinuousOrder) {
  const auto order = make_sequential(1'000'000);
  const Schedule schedule{.size = 50,
                          .epoch = 4,
                          .batch_size = 4,
                          .world_size = 3,
                          .drop_last = true,
                          .epochs = 30,
                          .position = 12,
                          .continuous = true,
                          .base = 200,
                          .skips = {{6, 12, 24}}};
  std::uint64_t expected = 212;
  for (std::uint64_t turn = 0; turn < schedule.turns(); ++turn) {
    const Schedule::Turn at = schedule.at(turn);
    if (at.epoch == 6 && at.step == 2) expected += 12;
    EXPECT_EQ(at.base + at.position, expected) << turn;
    EXPECT_EQ(samples_of(schedule, *order, turn),
              (Samples{expected, expected + 1, expected + 2, expected + 3}));
    expected += 12;
  }
  EXPECT_EQ(schedule.turns(), 3U + 4U + 3U + 27U * 4U);
}

TEST(Schedule, PassesEpochsThatAreSkippedAsAWhole) {
  const auto order = make_sequential(40);
  const Schedule schedule{.size = 40,
                          .epoch = 2,
                          .batch_size = 4,
                          .drop_last = true,
                          .epochs = 6,
                          .position = 20,
                          .step = 5,
                          .skips = {{2, 20, 40}, {4, 0, 40}, {5, 0, 40}}};
  ASSERT_EQ(schedule.turns(), 30U);
  for (std::uint64_t turn = 0; turn < 30; ++turn) {
    const std::uint64_t epoch = turn < 10 ? 3 : turn / 10 + 5;
    EXPECT_EQ(schedule.at(turn).epoch, epoch) << turn;
    EXPECT_EQ(schedule.at(turn).step, turn % 10);
    EXPECT_EQ(schedule.at(turn).left, 10 - turn % 10);
    EXPECT_EQ(samples_of(schedule, *order, turn).front(), turn % 10 * 4);
  }
  EXPECT_EQ(schedule.at(30).epoch, 8U);
}

TEST(Schedule, FindsTheStepsOfAnyEpochWithoutWalking) {
  const Schedule schedule{.size = 50,
                          .epoch = 4,
                          .batch_size = 4,
                          .world_size = 3,
                          .drop_last = true,
                          .epochs = 40,
                          .position = 13,
                          .step = 9,
                          .continuous = true,
                          .base = 200,
                          .skips = {{6, 12, 24}, {20, 0, 48}}};
  for (std::uint64_t turn = 0; turn < schedule.turns(); ++turn) {
    const Schedule::Turn at = schedule.at(turn);
    const std::uint64_t all = schedule.in_epoch(at.epoch, 0).left;
    const Schedule::Turn same = schedule.in_epoch(at.epoch, all - at.left);
    EXPECT_EQ(same.epoch, at.epoch);
    EXPECT_EQ(same.step, at.step);
    EXPECT_EQ(same.position, at.position);
    EXPECT_EQ(same.base, at.base);
    EXPECT_EQ(same.left, at.left);
  }
  const Schedule::Turn end = schedule.in_epoch(6, 3);
  EXPECT_EQ(end.step, 4U);
  EXPECT_EQ(end.position, 48U);
  EXPECT_EQ(end.left, 0U);
  EXPECT_EQ(schedule.in_epoch(4 + (std::uint64_t{1} << 40), 0).left, 4U);
}

}  // namespace
}  // namespace lowtide::schedule_test

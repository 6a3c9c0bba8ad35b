#include "loader/schedule.h"

#include <gtest/gtest.h>

#include <vector>

namespace lowtide {
namespace {

TEST(Schedule, GivesEveryPositionToOneStepOfOneRank) {
  for (std::uint64_t size = 0; size < 60; ++size) {
    for (const std::uint64_t batch_size : {1, 2, 3, 7, 59, 60, 1000}) {
      for (const std::uint64_t world_size : {1, 2, 3, 8}) {
        std::vector<int> times(size, 0);
        for (std::uint64_t rank = 0; rank < world_size; ++rank) {
          const Schedule schedule{
              .size = size, .batch_size = batch_size, .rank = rank, .world_size = world_size};
          for (std::uint64_t step = 0; step < schedule.steps(); ++step) {
            ASSERT_GT(schedule.count(step), 0U);
            ASSERT_LE(schedule.count(step), batch_size);
            for (std::uint64_t i = 0; i < schedule.count(step); ++i) {
              ++times.at(schedule.first(step) + i);
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
        EXPECT_EQ(schedule.steps(), size / 7 / world_size);
        for (std::uint64_t step = 0; step < schedule.steps(); ++step) {
          EXPECT_EQ(schedule.count(step), 7U);
          EXPECT_LE(schedule.first(step) + 7, size);
        }
      }
    }
  }
}

TEST(Schedule, StandsTheLargestNumbers) {
  constexpr std::uint64_t kHuge = ~std::uint64_t{0};
  const Schedule one{.size = std::uint64_t{1} << 63, .batch_size = kHuge};
  EXPECT_EQ(one.steps(), 1U);
  EXPECT_EQ(one.count(0), std::uint64_t{1} << 63);
  const Schedule none{.size = 10, .batch_size = kHuge, .rank = 1, .world_size = 2};
  EXPECT_EQ(none.steps(), 0U);
}

}  // namespace
}  // namespace lowtide

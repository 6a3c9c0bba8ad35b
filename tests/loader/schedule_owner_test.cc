// Who gets which position: told by arithmetic, and by listening to all ranks.
#include <gtest/gtest.h>

#include <map>

#include "support/schedule_samples.h"

namespace lowtide::schedule_owner_test {
namespace {

// Who gets each position of an epoch, by listening to all ranks; no entry where nobody does.
struct Heard {
  std::uint64_t step, rank, row;
};
std::map<std::uint64_t, Heard> hear(Schedule schedule, std::uint64_t epoch) {
  const auto order = make_sequential(schedule.size);
  std::map<std::uint64_t, Heard> heard;
  for (schedule.rank = 0; schedule.rank < schedule.world_size; ++schedule.rank) {
    for (std::uint64_t turn = 0; turn < schedule.turns(); ++turn) {
      const Schedule::Turn at = schedule.at(turn);
      if (at.epoch > epoch) break;
      if (at.epoch < epoch) continue;
      const Samples samples = samples_of(schedule, *order, turn);
      for (std::size_t row = 0; row < samples.size(); ++row) {
        EXPECT_TRUE(heard.insert({samples[row], {at.step, schedule.rank, row}}).second);
      }
    }
  }
  return heard;
}

void expect_owners(const Schedule& schedule, std::uint64_t epoch) {
  const std::map<std::uint64_t, Heard> heard = hear(schedule, epoch);
  EXPECT_FALSE(heard.empty());
  const std::uint64_t first = epoch == schedule.epoch ? schedule.position : 0;
  for (std::uint64_t at = first; at < schedule.size + 3; ++at) {
    const auto owner = schedule.owner(epoch, at);
    const auto known = heard.find(at);
    ASSERT_EQ(owner.has_value(), known != heard.end()) << at << " of epoch " << epoch;
    if (!owner) continue;
    EXPECT_EQ(owner->step, known->second.step) << at;
    EXPECT_EQ(owner->rank, known->second.rank) << at;
    EXPECT_EQ(owner->row, known->second.row) << at;
  }
}

TEST(ScheduleOwner, TellsTheOwnerOfEveryPositionThatItDealsOut) {
  for (const std::uint64_t start : {0, 1, 12, 25, 33}) {
    for (const std::uint64_t batch_size : {1, 3, 4}) {
      for (const std::uint64_t world_size : {1, 2, 3}) {
        for (const bool drop_last : {true, false}) {
          SCOPED_TRACE(testing::Message() << "from " << start << " by " << batch_size << " over "
                                          << world_size << (drop_last ? "" : ", all"));
          const Schedule schedule{.size = 100,
                                  .epoch = 5,
                                  .batch_size = batch_size,
                                  .world_size = world_size,
                                  .drop_last = drop_last,
                                  .epochs = 4,
                                  .position = start,
                                  .step = start == 0 ? 0U : 7U,
                                  .skips = {{5, 20, 32}, {5, 40, 47}, {7, 0, 9}, {7, 97, 100}}};
          for (const std::uint64_t epoch : {5, 6, 7, 8}) expect_owners(schedule, epoch);
        }
      }
    }
  }
}

TEST(ScheduleOwner, TellsWhatLiesBehindItAsIfItsSizesHadHeld) {
  const Schedule schedule{.size = 100,
                          .epoch = 5,
                          .batch_size = 4,
                          .world_size = 2,
                          .drop_last = true,
                          .position = 48,
                          .step = 6};
  for (const std::uint64_t at : {0, 11, 47}) {
    for (const std::uint64_t epoch : {3, 5}) {
      const auto owner = schedule.owner(epoch, at);
      ASSERT_TRUE(owner);
      EXPECT_EQ(owner->step, at / 8);
      EXPECT_EQ(owner->rank, at / 4 % 2);
      EXPECT_EQ(owner->row, at % 4);
    }
  }
  EXPECT_FALSE(schedule.owner(3, 96)) << "the rest of an epoch is left out";
}

TEST(ScheduleOwner, TellsWhatWasSkippedBehindIt) {
  const Schedule schedule{.size = 100,
                          .epoch = 5,
                          .batch_size = 4,
                          .world_size = 2,
                          .drop_last = true,
                          .position = 48,
                          .step = 6,
                          .skips = {{3, 8, 24}, {5, 16, 32}}};
  for (const std::uint64_t at : {0, 7, 24, 41, 95}) {
    const auto owner = schedule.owner(3, at);
    ASSERT_TRUE(owner) << at;
    EXPECT_EQ(owner->step, at / 8) << "by its old name";
    EXPECT_EQ(owner->rank, at / 4 % 2);
  }
  for (const std::uint64_t at : {8, 23, 96}) EXPECT_FALSE(schedule.owner(3, at)) << at;
  for (const std::uint64_t at : {16, 31}) EXPECT_FALSE(schedule.owner(5, at)) << at;
  EXPECT_EQ(schedule.owner(5, 40)->step, 5U);
  EXPECT_EQ(schedule.owner(5, 48)->step, 6U) << "ahead";
}

}  // namespace
}  // namespace lowtide::schedule_owner_test

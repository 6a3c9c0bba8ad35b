#include "loader/room.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "order/order.h"
#include "support/lookahead_rig.h"

namespace lowtide::room_test {
namespace {

constexpr std::uint64_t kMany = 1'000'000;  // rows of the data
constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;

Room room_for(std::uint64_t columns, std::uint64_t batch_size, bool shuffle,
              std::uint64_t free_bytes, std::uint64_t most_ahead = 0) {
  const std::unique_ptr<Order> order = shuffle ? make_shuffle(kMany, 5) : make_sequential(kMany);
  return plan_room(rows_of(false, kMany, columns), *order,
                   {.size = kMany, .batch_size = batch_size}, free_bytes, most_ahead);
}

TEST(Room, IsNeverMoreThanIsFree) {
  for (const bool shuffle : {true, false}) {
    for (const std::uint64_t columns : {1UL, 162UL, 100'000UL}) {
      for (const std::uint64_t batch_size : {1UL, 100UL, 4096UL, 100'000UL}) {
        for (const std::uint64_t free_bytes : {0UL, 1000UL, 100'000UL, 64 * kMiB, kPlenty}) {
          const Room room = room_for(columns, batch_size, shuffle, free_bytes);
          EXPECT_LE(room.elastic_bytes, free_bytes) << columns << " columns, " << batch_size;
          EXPECT_LE(room.hot_ahead * batch_size * columns * 4, free_bytes);
          EXPECT_LE(room.sweep * batch_size * columns * 4, free_bytes);
        }
      }
    }
  }
}

TEST(Room, ForDataOnServersHasManySetsPerSweepAndLongOnesInOrder) {
  const auto order = make_shuffle(kMany, 5);
  const Rows rows = rows_of(false, kMany, 16 * 1024);  // 64 KiB each
  const Schedule schedule{.size = kMany, .batch_size = 64};
  const Room near = plan_room(rows, *order, schedule, 256 * kMiB);
  const Room far = plan_room(rows, *order, schedule, 256 * kMiB, 0, /*far=*/true);
  EXPECT_GE(far.sweep * 64 / far.set_samples, 16U);
  EXPECT_LT(near.sweep * 64 / near.set_samples, 2U);
  EXPECT_LE(far.elastic_bytes, 256 * kMiB);
  const auto in_order = make_sequential(kMany);
  const Room scan = plan_room(rows, *in_order, schedule, 256 * kMiB, 0, /*far=*/true);
  EXPECT_EQ(scan.set_samples * 64 * 1024, kFarSetBytes);
  EXPECT_GE(scan.ahead * 64 * 64 * 1024, 4 * kFarSetBytes);
}

TEST(Room, IsAllForOneSweepWhereBatchesAreDeliveredAsTheyAreRead) {
  const Room room = room_for(162, 4096, true, 512 * kMiB);
  EXPECT_GT(room.sweep * 4096 * 162 * 4, 460 * kMiB);
  EXPECT_EQ(room.hot_sweep, 2 * 16U) << "more rows without neighbours gain little";
  EXPECT_EQ(room_for(162, 32'768, true, 512 * kMiB).hot_sweep, 2 * 2U);
  EXPECT_EQ(room_for(162, 4096, false, 512 * kMiB).sweep, 0U) << "they are in file order anyway";
  EXPECT_EQ(room_for(162, 4096, true, 8 * kMiB).sweep, 0U) << "one batch is no sweep";
}

TEST(Room, HoldsSixSetsOfBatchesInOrder) {
  EXPECT_EQ(room_for(162, 4096, false, kPlenty).hot_ahead, 6U) << "a batch of 2.5 MiB is a set";
  EXPECT_EQ(room_for(256, 128, false, kPlenty).hot_ahead, 6 * 8U) << "eight of 128 KiB are one";
}

TEST(Room, LooksNoFurtherAheadThanAsked) {
  for (const bool shuffle : {true, false}) {
    const Room room = room_for(162, 100, shuffle, kPlenty, 2);
    EXPECT_EQ(room.ahead, 2U);
    EXPECT_EQ(room.hot_ahead, 3U) << "the one that changes hands is beside them";
    EXPECT_LE(room.sweep, 2U);
  }
}

}  // namespace
}  // namespace lowtide::room_test

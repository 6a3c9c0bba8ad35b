#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "order/order.h"

namespace lowtide::sequential_test {
namespace {

TEST(Sequential, GivesEveryPositionItsOwnNumberInEveryEpoch) {
  const auto order = make_sequential(1000);
  for (const std::uint64_t epoch : {0U, 7U}) {
    std::vector<std::uint64_t> out(10);
    order->fill(epoch, 990, out);
    for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(out[i], 990 + i);
    EXPECT_EQ(order->position_of(epoch, 999), 999U);
    EXPECT_EQ(order->position_of(epoch, 1000), std::nullopt);
  }
}

TEST(Sequential, SaysThatItIsSequential) {
  EXPECT_TRUE(make_sequential(3)->sequential());
}

TEST(Sequential, ReachesTheLargestSize) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  const auto order = make_sequential(kLargest);
  EXPECT_EQ(order->size(), kLargest);
  std::vector<std::uint64_t> out(2);
  order->fill(0, kLargest - 2, out);
  EXPECT_EQ(out, (std::vector<std::uint64_t>{kLargest - 2, kLargest - 1}));
}

TEST(Sequential, MayBeEmpty) {
  const auto order = make_sequential(0);
  EXPECT_EQ(order->size(), 0U);
  order->fill(0, 0, {});
  EXPECT_EQ(order->position_of(0, 0), std::nullopt);
}

}  // namespace
}  // namespace lowtide::sequential_test

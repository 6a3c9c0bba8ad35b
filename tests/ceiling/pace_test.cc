#include "ceiling/pace.h"

#include <gtest/gtest.h>

namespace lowtide::pace_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMs = 1'000'000;

Pace pace_with(std::uint64_t headroom, std::uint64_t limit) {
  Pace pace;
  pace.counted(100 * kMiB, headroom, limit, 1000 * kMs);
  return pace;
}

TEST(Pace, CountsWhenTheProcessGrewByTheHeadroom) {
  Pace pace = pace_with(50 * kMiB, 256 * kMiB);
  EXPECT_FALSE(pace.look(100 * kMiB, 1001 * kMs));
  EXPECT_FALSE(pace.look(149 * kMiB, 1002 * kMs));
  EXPECT_TRUE(pace.look(150 * kMiB, 1003 * kMs));
}

TEST(Pace, CountsFromTheLowestPointWhenSomethingElseShrank) {
  Pace pace = pace_with(50 * kMiB, 256 * kMiB);
  EXPECT_FALSE(pace.look(20 * kMiB, 1001 * kMs));
  EXPECT_FALSE(pace.look(69 * kMiB, 1002 * kMs));
  EXPECT_TRUE(pace.look(70 * kMiB, 1003 * kMs));
}

TEST(Pace, CountsAfterATenthOfASecondOnlyIfSomethingMoved) {
  Pace still = pace_with(50 * kMiB, 256 * kMiB);
  EXPECT_FALSE(still.look(100 * kMiB, 1000 * kMs + 2 * Pace::kStaleNs));
  Pace moved = pace_with(50 * kMiB, 256 * kMiB);
  EXPECT_FALSE(moved.look(101 * kMiB, 1001 * kMs));
  EXPECT_TRUE(moved.look(101 * kMiB, 1000 * kMs + Pace::kStaleNs));
}

TEST(Pace, LooksSoonerWhenLittleIsLeftOrGrowthIsFast) {
  Pace far = pace_with(512 * kMiB, 512 * kMiB);
  EXPECT_FALSE(far.look(100 * kMiB + 4096, 1001 * kMs));
  Pace near = pace_with(20 * kMiB, 512 * kMiB);
  EXPECT_FALSE(near.look(100 * kMiB + 4096, 1001 * kMs));
  EXPECT_LT(near.wait_ns(), far.wait_ns());
  EXPECT_FALSE(far.look(500 * kMiB, 1002 * kMs));
  EXPECT_EQ(far.wait_ns(), Pace::kShortestNs);
}

TEST(Pace, NeverWaitsLongerThanTheLimitTakesToFill) {
  Pace pace = pace_with(kMiB, 32 * kMiB);
  std::uint64_t wait = 0;
  for (std::uint64_t look = 0; look < 100; ++look) {
    EXPECT_FALSE(pace.look(100 * kMiB, (1001 + look) * kMs));
    EXPECT_GE(pace.wait_ns(), wait);  // slower and slower while nothing moves
    wait = pace.wait_ns();
  }
  EXPECT_LE(wait, 32 * kMiB / Pace::kBytesPerMs * kMs + kMs);
  EXPECT_GT(wait, Pace::kUsualNs);
}

}  // namespace
}  // namespace lowtide::pace_test

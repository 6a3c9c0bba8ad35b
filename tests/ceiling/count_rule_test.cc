#include "ceiling/count_rule.h"

#include <gtest/gtest.h>

namespace lowtide::count_rule_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMs = 1'000'000;

CountRule rule_with(std::uint64_t headroom, std::uint64_t limit) {
  CountRule rule;
  rule.counted(100 * kMiB, 100 * kMiB, headroom, limit, 1000 * kMs);
  return rule;
}

TEST(CountRule, CountsWhenTheProcessGrewByTheHeadroom) {
  CountRule rule = rule_with(50 * kMiB, 256 * kMiB);
  EXPECT_FALSE(rule.look(100 * kMiB, 1001 * kMs));
  EXPECT_FALSE(rule.look(149 * kMiB, 1002 * kMs));
  EXPECT_TRUE(rule.look(150 * kMiB, 1003 * kMs));
}

TEST(CountRule, CountsFromTheLowestPointWhenSomethingElseShrank) {
  CountRule rule = rule_with(50 * kMiB, 256 * kMiB);
  EXPECT_FALSE(rule.look(20 * kMiB, 1001 * kMs));
  EXPECT_FALSE(rule.look(69 * kMiB, 1002 * kMs));
  EXPECT_TRUE(rule.look(70 * kMiB, 1003 * kMs));
}

TEST(CountRule, CountsAfterATenthOfASecondOnlyIfSomethingMoved) {
  CountRule still = rule_with(50 * kMiB, 256 * kMiB);
  EXPECT_FALSE(still.look(100 * kMiB, 1000 * kMs + 2 * CountRule::kStaleNs));
  CountRule moved = rule_with(50 * kMiB, 256 * kMiB);
  EXPECT_FALSE(moved.look(101 * kMiB, 1001 * kMs));
  EXPECT_TRUE(moved.look(101 * kMiB, 1000 * kMs + CountRule::kStaleNs));
}

TEST(CountRule, CountsAgainIfPagesCameDuringTheCount) {
  CountRule rule;
  rule.counted(80 * kMiB, 100 * kMiB, 50 * kMiB, 256 * kMiB, 1000 * kMs);
  EXPECT_FALSE(rule.look(100 * kMiB, 1001 * kMs));
  EXPECT_TRUE(rule.look(100 * kMiB, 1000 * kMs + CountRule::kStaleNs));
}

TEST(CountRule, LooksSoonerWhenLittleIsLeftOrGrowthIsFast) {
  CountRule far = rule_with(512 * kMiB, 512 * kMiB);
  EXPECT_FALSE(far.look(100 * kMiB + 4096, 1001 * kMs));
  CountRule near = rule_with(20 * kMiB, 512 * kMiB);
  EXPECT_FALSE(near.look(100 * kMiB + 4096, 1001 * kMs));
  EXPECT_LT(near.wait_ns(), far.wait_ns());
  EXPECT_FALSE(far.look(500 * kMiB, 1002 * kMs));
  EXPECT_EQ(far.wait_ns(), Pace::kShortestNs);
}

TEST(CountRule, NeverWaitsLongerThanTheLimitTakesToFill) {
  CountRule rule = rule_with(kMiB, 32 * kMiB);
  std::uint64_t wait = 0;
  for (std::uint64_t look = 0; look < 100; ++look) {
    EXPECT_FALSE(rule.look(100 * kMiB, (1001 + look) * kMs));
    EXPECT_GE(rule.wait_ns(), wait);  // slower and slower while nothing moves
    wait = rule.wait_ns();
  }
  EXPECT_LE(wait, 32 * kMiB / 16);  // at 16 bytes per ns
  EXPECT_GT(wait, kMs);
}

}  // namespace
}  // namespace lowtide::count_rule_test

#include "core/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace lowtide::checked_test {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(Checked, AddsUpToTheLastValueAndNoFurther) {
  std::uint64_t sum = 0;
  EXPECT_TRUE(checked_add(kMost - 1, 1, &sum));
  EXPECT_EQ(sum, kMost);
  EXPECT_FALSE(checked_add(kMost, 1, &sum));
}

TEST(Checked, MultipliesUpToTheLastValueAndNoFurther) {
  std::uint64_t product = 0;
  EXPECT_TRUE(checked_mul(1ULL << 32, (1ULL << 32) - 1, &product));
  EXPECT_EQ(product, 0xffffffff00000000ULL);
  EXPECT_FALSE(checked_mul(1ULL << 32, 1ULL << 32, &product));
}

TEST(Checked, FitsInsideDoesNotWrap) {
  EXPECT_TRUE(fits_inside(0, 0, 0));
  EXPECT_TRUE(fits_inside(6, 4, 10));
  EXPECT_TRUE(fits_inside(10, 0, 10));
  EXPECT_FALSE(fits_inside(6, 5, 10));
  EXPECT_FALSE(fits_inside(11, 0, 10));
  EXPECT_FALSE(fits_inside(8, kMost, 10));
  EXPECT_FALSE(fits_inside(kMost, 2, 10));
}

TEST(Checked, RoundsToPowersOfTwo) {
  EXPECT_EQ(round_down(4095, 4096), 0u);
  EXPECT_EQ(round_down(8191, 4096), 4096u);
  EXPECT_EQ(round_up(0, 4096), 0u);
  EXPECT_EQ(round_up(1, 512), 512u);
  EXPECT_EQ(round_up(kMost - 4095, 4096), kMost - 4095);
}

}  // namespace
}  // namespace lowtide::checked_test

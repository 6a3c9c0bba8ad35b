#include <gtest/gtest.h>

#include "ceiling/shim/churn.h"

namespace lowtide::ceiling::shim_churn_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kMs = 1'000'000;

// Trims of 200 MiB each, one every `between_ns`, for ten seconds; those that will be undone.
std::uint64_t undone(Churn& churn, std::uint64_t mapped_bytes, std::uint64_t between_ns) {
  std::uint64_t found = 0;
  for (std::uint64_t now = between_ns; now < 10'000 * kMs; now += between_ns) {
    if (churn.trimmed(200 * kMiB, mapped_bytes, now)) ++found;
  }
  return found;
}

TEST(ShimChurn, AReaderInOrderIsNone) {
  Churn churn;
  churn.counted(200 * kMiB, 3);
  EXPECT_EQ(undone(churn, 100 * 1024 * kMiB, 40 * kMs), 0U);  // 5 GB/s
}

TEST(ShimChurn, PagesInManySmallRunsAreWantedBack) {
  Churn churn;
  churn.counted(200 * kMiB, 3000);
  EXPECT_GT(undone(churn, 2048 * kMiB, 40 * kMs), 200U);
}

TEST(ShimChurn, TrimsThatReleaseTheSameFileManyTimesASecondAreUndone) {
  Churn churn;
  churn.counted(200 * kMiB, 20);
  EXPECT_GT(undone(churn, 1024 * kMiB, 2 * kMs), 4000U);
}

TEST(ShimChurn, RareTrimsCostNothingToSpeakOf) {
  Churn churn;
  churn.counted(200 * kMiB, 3000);
  EXPECT_EQ(undone(churn, 2048 * kMiB, 2000 * kMs), 0U);
}

}  // namespace
}  // namespace lowtide::ceiling::shim_churn_test

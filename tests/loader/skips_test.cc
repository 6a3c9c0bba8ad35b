#include "loader/skips.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace lowtide::skips_test {
namespace {

std::vector<Skip> listed(const Skips& skips) {
  return {skips.begin(), skips.end()};
}

TEST(Skips, SortsAndJoinsWhatOverlapsOrTouches) {
  const Skips skips{{2, 5, 9}, {1, 20, 30}, {1, 0, 5}, {1, 5, 7}, {1, 6, 12}, {1, 31, 32}};
  const std::vector<Skip> expected{{1, 0, 12}, {1, 20, 30}, {1, 31, 32}, {2, 5, 9}};
  EXPECT_EQ(listed(skips), expected);
  EXPECT_EQ(skips.size(), 4U);
  EXPECT_EQ(Skips().size(), 0U);
}

TEST(Skips, ForgetsTheOldestOfFinishedEpochs) {
  Skips skips{{0, 1, 2}, {0, 5, 6}, {1, 1, 2}, {3, 1, 2}, {3, 5, 6}};
  skips.forget(4, 3);
  EXPECT_EQ(skips.size(), 4U);
  EXPECT_EQ(skips.begin()->first, 5U);
  skips.forget(1, 3);
  EXPECT_EQ(skips.size(), 2U) << "those of the current epoch stay";
}

TEST(Skips, KnowsWhichEpochAndRangeComesNext) {
  const Skips skips{{2, 5, 9}, {2, 20, 30}, {7, 0, 1}};
  EXPECT_EQ(skips.next_epoch(0), 2U);
  EXPECT_EQ(skips.next_epoch(3), 7U);
  EXPECT_EQ(skips.next_epoch(8), Skips::kNone);
  EXPECT_EQ(skips.next(2, 0), 5U);
  EXPECT_EQ(skips.next(2, 5), 20U);
  EXPECT_EQ(skips.next(2, 20), Skips::kNone);
  EXPECT_EQ(skips.next(3, 0), Skips::kNone);
}

TEST(Skips, CountsAsOneByOne) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Skip> ranges;
    std::set<std::uint64_t> skipped;
    for (unsigned i = 0; i < random() % 5; ++i) {
      const std::uint64_t first = random() % 40, last = first + 1 + random() % 10;
      ranges.push_back({4, first, last});
      for (std::uint64_t at = first; at < last; ++at) skipped.insert(at);
    }
    const Skips skips(ranges);
    const std::uint64_t start = random() % 45, end = start + random() % 20;
    std::uint64_t count = 0;
    for (std::uint64_t at = start; at < end; ++at) count += skipped.count(at);
    EXPECT_EQ(skips.count(4, start, end), count);
    EXPECT_EQ(skips.count(3, start, end), 0U);
    // Walks until `kept` positions were passed that are not skipped.
    const std::uint64_t kept = random() % 20;
    std::uint64_t at = start, passed = 0, jumped = 0;
    while (passed < kept || skipped.count(at) > 0) ++(skipped.count(at++) > 0 ? jumped : passed);
    EXPECT_EQ(skips.before(4, start, kept), jumped) << start << " " << kept;
  }
}

}  // namespace
}  // namespace lowtide::skips_test

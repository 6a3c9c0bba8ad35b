// Statistics here have fixed seeds: a test passes always or never.
#include "order/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/chance.h"
#include "support/thrown.h"

namespace lowtide::random_test {
namespace {

constexpr std::uint64_t kOne = 1;

std::vector<std::uint64_t> draws_of(std::uint64_t limit, std::uint64_t seed, std::uint64_t epoch,
                                    std::uint64_t first, std::size_t count) {
  std::vector<std::uint64_t> out(count);
  make_random(first + count, limit, seed)->fill(epoch, first, out);
  return out;
}

// How unevenly pairs of draws fall into a grid of cells x cells.
double surprise_of_pairs(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b,
                         std::uint64_t limit, std::uint64_t cells) {
  Counts counts(static_cast<std::size_t>(cells * cells));
  const std::uint64_t width = limit / cells;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    ++counts[static_cast<std::size_t>(a[i] / width * cells + b[i] / width)];
  }
  return surprise(counts);
}

std::string refusal(std::uint64_t limit) {
  return thrown<std::invalid_argument>([&] { static_cast<void>(make_random(10, limit, 0)); });
}

struct Golden {
  std::uint64_t limit, seed, epoch, position;
  std::vector<std::uint64_t> draws;
};

// Saved runs resume by these numbers. If this test fails, the code is wrong, never the numbers.
TEST(Random, KeepsItsDrawsOverVersionsAndPlatforms) {
  const std::vector<Golden> promised{
      {10, 0, 0, 0, {1, 2, 7, 3, 4, 7}},
      {10, 0, 1, 0, {7, 7, 3, 2, 1, 5}},
      {1'000'000, 7, 3, 123'456, {962661, 713530, 665283, 948859}},
      {1'000'000'000'000,
       1,
       0,
       kOne << 62,
       {457285150504, 853488390576, 963820973095, 428348141357}},
      {3 * (kOne << 61),
       5,
       2,
       0,
       {5269031329683344836, 3970928986481562055, 1789785375632585068, 6778406914474555868}},
      {kOne << 63,
       ~std::uint64_t{0},
       ~std::uint64_t{0},
       (kOne << 63) - 3,
       {7112004235118493031, 4731815388802308064, 6126968779804608937}},
  };
  for (const Golden& golden : promised) {
    EXPECT_EQ(
        draws_of(golden.limit, golden.seed, golden.epoch, golden.position, golden.draws.size()),
        golden.draws)
        << golden.limit << " samples, seed " << golden.seed;
  }
}

TEST(Random, FallsEvenlyOnEverySample) {
  for (const std::uint64_t limit : {2U, 3U, 7U, 10U, 1000U, 1024U}) {
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      Counts counts(static_cast<std::size_t>(limit));
      for (const std::uint64_t draw : draws_of(limit, seed, 4, 0, 200'000)) {
        ASSERT_LT(draw, limit);
        ++counts[static_cast<std::size_t>(draw)];
      }
      EXPECT_LT(std::abs(surprise(counts)), kChance) << limit << " samples, seed " << seed;
    }
  }
}

// 2^64 hashes over 3 * 2^61 samples are 8 for every 3: without drawing again, a third of the
// samples would come less often than the others.
TEST(Random, FavoursNoSampleWhereTheLimitDoesNotDivideTheHashes) {
  const std::uint64_t limit = 3 * (kOne << 61);
  Counts thirds(3);
  Counts cells(96);
  for (const std::uint64_t draw : draws_of(limit, 3, 0, 0, 300'000)) {
    ASSERT_LT(draw, limit);
    ++thirds[draw % 3];
    ++cells[static_cast<std::size_t>(draw / (limit / 96))];
  }
  EXPECT_LT(surprise(thirds), kChance);
  EXPECT_LT(surprise(cells), kChance);
}

TEST(Random, DrawsNeighboursIndependently) {
  for (const std::uint64_t limit : {kOne << 10, kOne << 40, 3 * (kOne << 61), kOne << 63}) {
    const auto draws = draws_of(limit, 11, 0, 1'000'000, 200'000);
    for (const std::ptrdiff_t lag : {1, 2, 3, 64, 1024}) {
      const std::vector<std::uint64_t> later(draws.begin() + lag, draws.end());
      EXPECT_LT(std::abs(surprise_of_pairs(draws, later, limit, 16)), kChance)
          << limit << " samples, " << lag << " apart";
    }
  }
}

TEST(Random, DrawsNeighbouringEpochsSeedsAndLimitsIndependently) {
  const std::uint64_t limit = kOne << 30;
  const auto here = draws_of(limit, 11, 5, 0, 200'000);
  EXPECT_LT(std::abs(surprise_of_pairs(here, draws_of(limit, 11, 6, 0, 200'000), limit, 16)),
            kChance);
  EXPECT_LT(std::abs(surprise_of_pairs(here, draws_of(limit, 12, 5, 0, 200'000), limit, 16)),
            kChance);
  // The other way round a sum of seed and epoch would be the same.
  EXPECT_LT(std::abs(surprise_of_pairs(here, draws_of(limit, 12, 4, 0, 200'000), limit, 16)),
            kChance);
  const auto larger = draws_of(limit + 1, 11, 5, 0, 200'000);
  EXPECT_LT(std::abs(surprise_of_pairs(here, larger, limit + 16, 16)), kChance);
}

TEST(Random, DrawsWithReplacement) {
  const auto draws = draws_of(100'000, 1, 0, 0, 100'000);
  const std::set<std::uint64_t> distinct(draws.begin(), draws.end());
  // 1 - 1/e of all samples are expected, with a standard deviation of 99.
  EXPECT_NEAR(static_cast<double>(distinct.size()), 63'212, 450);
}

TEST(Random, IsUnrelatedToTheShuffleOfTheSameSizeSeedAndEpoch) {
  const std::uint64_t size = 1000;
  std::size_t same = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    std::uint64_t last = 0;
    make_shuffle(size, seed)->fill(0, size - 1, {&last, 1});
    same += last == draws_of(size, seed, 0, 0, 1)[0] ? 1 : 0;
  }
  EXPECT_LT(same, 8U);
}

TEST(Random, DiffersBySeedAndEpoch) {
  std::set<std::vector<std::uint64_t>> beginnings;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
      beginnings.insert(draws_of(1000, seed, epoch, 0, 12));
    }
  }
  EXPECT_EQ(beginnings.size(), 400U);
}

TEST(Random, GivesTheSameDrawsInPiecesAndInALongerEpoch) {
  for (const std::uint64_t limit : {kOne, std::uint64_t{10}, 3 * (kOne << 61), kOne << 63}) {
    for (const std::uint64_t start : {std::uint64_t{0}, kOne << 62, ~std::uint64_t{0} - 1000}) {
      const auto whole = draws_of(limit, 8, 6, start, 1000);
      const auto order = make_random(~std::uint64_t{0}, limit, 8);
      std::mt19937_64 random(5);
      std::vector<std::uint64_t> pieces(1000);
      for (std::size_t done = 0; done < pieces.size();) {
        const std::size_t take = std::min<std::size_t>(pieces.size() - done, random() % 70);
        order->fill(6, start + done, std::span(pieces).subspan(done, take));
        done += take;
      }
      EXPECT_EQ(pieces, whole) << limit << " samples from " << start;
    }
  }
}

TEST(Random, HasOneSampleWhereTheLimitIsOne) {
  EXPECT_EQ(draws_of(1, 9, 0, 1000, 50), std::vector<std::uint64_t>(50, 0));
}

TEST(Random, ReachesBothEndsOf2ToThe63Samples) {
  const auto draws = draws_of(kOne << 63, 2, 0, 0, 100'000);
  const auto [least, most] = std::minmax_element(draws.begin(), draws.end());
  EXPECT_LT(*least, (kOne << 63) / 10'000);
  EXPECT_LT(*most, kOne << 63);
  EXPECT_GT(*most, (kOne << 63) - (kOne << 63) / 10'000);
}

TEST(Random, CannotSayWhereASampleComes) {
  const auto order = make_random(100, 10, 1);
  EXPECT_EQ(order->size(), 100U);
  EXPECT_FALSE(order->sequential());
  EXPECT_EQ(order->position_of(0, 3), std::nullopt);
}

TEST(Random, RefusesLimitsOutside1To2ToThe63) {
  EXPECT_EQ(refusal(0), "random: limit must be 1 to 2^63, not 0");
  EXPECT_EQ(refusal((kOne << 63) + 1), "random: limit must be 1 to 2^63, not 9223372036854775809");
  EXPECT_EQ(refusal(kOne << 63), "no error");
}

}  // namespace
}  // namespace lowtide::random_test

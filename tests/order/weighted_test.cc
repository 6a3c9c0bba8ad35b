// Statistics here have fixed seeds: a test passes always or never.
#include "order/weighted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "order/random.h"
#include "support/chance.h"

namespace lowtide::weighted_test {
namespace {

using Weights = std::vector<double>;
using Samples = std::vector<std::uint64_t>;

constexpr double kLeast = std::numeric_limits<double>::denorm_min();

std::shared_ptr<const AliasTable> table_of(const Weights& weights) {
  return std::make_shared<const AliasTable>(weights);
}

Samples draws_of(const std::shared_ptr<const AliasTable>& table, std::uint64_t seed,
                 std::uint64_t epoch, std::uint64_t first, std::size_t count) {
  Samples out(count);
  make_weighted(table, first + count, seed)->fill(epoch, first, out);
  return out;
}

Samples draws_of(const Weights& weights, std::uint64_t seed, std::uint64_t epoch,
                 std::uint64_t first, std::size_t count) {
  return draws_of(table_of(weights), seed, epoch, first, count);
}

// Chi-square against the weights, in standard deviations from what chance would give.
double surprise_of(const Samples& draws, const Weights& weights) {
  Counts counts(weights.size());
  for (const std::uint64_t sample : draws) ++counts.at(static_cast<std::size_t>(sample));
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double chi_square = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double expected = static_cast<double>(draws.size()) * weights[i] / sum;
    const double off = static_cast<double>(counts[i]) - expected;
    chi_square += off * off / expected;
  }
  const double freedom = static_cast<double>(weights.size()) - 1;
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

struct Golden {
  Weights weights;
  std::uint64_t seed, epoch, position;
  Samples draws;
};

// Saved runs resume by these numbers. If this test fails, the code is wrong, never the numbers.
TEST(Weighted, KeepsItsDrawsOverVersionsAndPlatforms) {
  Weights zipf(1'000'000);
  for (std::size_t i = 0; i < zipf.size(); ++i) zipf[i] = 1 / (1.0 + static_cast<double>(i));
  const std::vector<Golden> promised{
      {{1, 2, 3, 4}, 0, 0, 0, {1, 3, 2, 3, 2, 3}},
      {{1, 2, 3, 4}, 0, 1, 0, {2, 1, 3, 2, 1, 1}},
      {{0.5, 0, 1e-3, 7, 3}, 1, 0, 5, {3, 3, 4, 4, 3, 0}},
      {{kLeast, 5 * kLeast, 3 * kLeast}, 2, 1, 1'000'000, {1, 1, 0, 1, 1, 1}},
      {zipf, 7, 3, 123'456, {576207, 22062, 394306, 59725, 54915, 243}},
      {zipf,
       ~std::uint64_t{0},
       ~std::uint64_t{0},
       ~std::uint64_t{0} - 6,
       {734789, 62077, 793650, 195, 775659, 0}},
  };
  for (const Golden& golden : promised) {
    EXPECT_EQ(draws_of(golden.weights, golden.seed, golden.epoch, golden.position, 6), golden.draws)
        << golden.weights.size() << " weights, seed " << golden.seed;
  }
}

TEST(Weighted, FallsOnEverySampleByItsWeight) {
  Weights rising(1000);
  std::iota(rising.begin(), rising.end(), 1.0);
  const std::vector<Weights> all{
      {1, 1}, {1, 2, 3, 4}, {1000, 1, 1, 1, 30, 1}, Weights(777, 0.3), rising};
  for (const Weights& weights : all) {
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      EXPECT_LT(std::abs(surprise_of(draws_of(weights, seed, 4, 0, 1'000'000), weights)), kChance)
          << weights.size() << " weights, seed " << seed;
    }
  }
}

TEST(Weighted, DrawsNeighboursEpochsAndSeedsIndependently) {
  const Weights weights{1, 2, 3, 4, 5, 6, 7, 8};
  const std::size_t count = 200'000;
  const auto here = draws_of(weights, 11, 5, 0, count);
  Weights pairs;
  for (const double a : weights) {
    for (const double b : weights) pairs.push_back(a * b);
  }
  const std::vector<Samples> others{draws_of(weights, 11, 5, 1, count),  // the next position
                                    draws_of(weights, 11, 5, 64, count),
                                    draws_of(weights, 11, 6, 0, count),
                                    draws_of(weights, 12, 5, 0, count),
                                    draws_of(weights, 12, 4, 0, count)};  // the same sum as here
  for (std::size_t other = 0; other < others.size(); ++other) {
    Samples both(count);
    for (std::size_t i = 0; i < count; ++i) both[i] = here[i] * 8 + others[other][i];
    EXPECT_LT(std::abs(surprise_of(both, pairs)), kChance) << "pairing " << other;
  }
}

TEST(Weighted, IsUnrelatedToTheRandomOrderOfTheSameSizeSeedAndEpoch) {
  const auto table = table_of(Weights(16, 1.0));
  Samples uniform(100'000);
  make_random(uniform.size(), 16, 5)->fill(0, 0, uniform);
  const auto draws = draws_of(table, 5, 0, 0, uniform.size());
  Samples pairs(uniform.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = uniform[i] * 16 + draws[i];
  EXPECT_LT(std::abs(surprise_of(pairs, Weights(256, 1.0))), kChance);
}

TEST(Weighted, DiffersBySeedAndEpoch) {
  const auto table = table_of(Weights(1000, 2.5));
  std::set<Samples> beginnings;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
      beginnings.insert(draws_of(table, seed, epoch, 0, 12));
    }
  }
  EXPECT_EQ(beginnings.size(), 400U);
}

TEST(Weighted, GivesTheSameDrawsInPiecesAndInALongerEpoch) {
  const auto table = table_of({1, 0, 2, 1e-3, 40, 0.7});
  for (const std::uint64_t start : {std::uint64_t{0}, ~std::uint64_t{0} - 1000}) {
    const auto whole = draws_of(table, 8, 6, start, 1000);
    const auto order = make_weighted(table, ~std::uint64_t{0}, 8);
    std::mt19937_64 random(5);
    Samples pieces(1000);
    for (std::size_t done = 0; done < pieces.size();) {
      const std::size_t take = std::min<std::size_t>(pieces.size() - done, random() % 150);
      order->fill(6, start + done, std::span(pieces).subspan(done, take));
      done += take;
    }
    EXPECT_EQ(pieces, whole) << "from " << start;
  }
}

TEST(Weighted, CannotSayWhereASampleComes) {
  const auto order = make_weighted(table_of({1, 2}), 100, 1);
  EXPECT_EQ(order->size(), 100U);
  EXPECT_FALSE(order->sequential());
  EXPECT_EQ(order->position_of(0, 1), std::nullopt);
}

TEST(Weighted, KeepsItsTable) {
  auto table = table_of({0, 0, 1});
  const auto order = make_weighted(std::move(table), 4, 1);
  Samples out(4);
  order->fill(0, 0, out);
  EXPECT_EQ(out, Samples(4, 2));
}

}  // namespace
}  // namespace lowtide::weighted_test

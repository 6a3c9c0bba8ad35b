#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/hash.h"
#include "order/weighted.h"
#include "support/thrown.h"

namespace lowtide::weighted_table_test {
namespace {

using Weights = std::vector<double>;

constexpr double kFull = 4294967296.0;  // the fractions of a column
constexpr double kLeast = std::numeric_limits<double>::denorm_min();
constexpr double kMost = std::numeric_limits<double>::max();

// The exact probability of each sample: its fractions of all columns.
std::vector<std::uint64_t> fractions_of(const AliasTable& table) {
  std::vector<std::uint64_t> fractions(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto [threshold, alias] = table.columns()[i];
    fractions[i] += threshold;
    fractions.at(alias) += (std::uint64_t{1} << 32) - threshold;
  }
  return fractions;
}

std::string refusal(const Weights& weights) {
  return thrown<std::invalid_argument>([&] { static_cast<void>(AliasTable(weights)); });
}

// Weights in which zeros, denormals and the largest numbers stand beside each other.
std::vector<Weights> hostile_weights() {
  std::vector<Weights> all{
      {0, 1},
      {1, 0},
      {0, 0, 1e308, 0, 1e-308, kLeast, 0},
      {kMost, 0, kMost, kMost, 0, 1e-300},
      {kLeast, 0, kLeast, 3 * kLeast, -0.0},
      {0, 1e-310, 0, 2e-310, 1e-320},
      {1, 0, 0x1p-31, 0, 0x1p-32, 0, 0x1p-33, 0, 0x1p-63, 0x1p-64, 0x1p-65},
  };
  for (const std::size_t at : {0U, 499U, 999U}) {
    all.emplace_back(1000, 0.0)[at] = 0.1;
  }
  Weights mostly_zero(3001, 0.0);
  for (std::size_t i = 0; i < mostly_zero.size(); i += 7) mostly_zero[i] = 1 / (1.0 + double(i));
  mostly_zero.back() = 0;
  all.push_back(mostly_zero);
  return all;
}

TEST(AliasTable, GivesEverySampleTheShareOfItsWeight) {
  std::mt19937_64 random(1);
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  for (int round = 0; round < 400; ++round) {
    Weights weights(1 + random() % (round % 10 == 0 ? 5000 : 60));
    const double spread = std::array{0.0, 1.0, 10.0, 700.0}[round % 4];
    const double zeros = std::array{0.0, 0.5, 0.9}[round % 3];
    for (double& weight : weights) weight = unit() < zeros ? 0 : std::exp(spread * (unit() - 0.5));
    weights[random() % weights.size()] = std::exp(spread / 2);
    long double sum = 0;
    for (const double weight : weights) sum += weight;
    const AliasTable table(weights);
    const auto fractions = fractions_of(table);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const auto expected = static_cast<double>(weights[i] / sum) * kFull * double(weights.size());
      ASSERT_NEAR(static_cast<double>(fractions[i]), expected, 1.01 + expected * 1e-15)
          << "round " << round << ", entry " << i << " of " << weights.size();
      ASSERT_TRUE(weights[i] > 0 || fractions[i] == 0) << "round " << round << ", entry " << i;
    }
  }
}

TEST(AliasTable, NeverHoldsASampleOfWeightZero) {
  for (const Weights& weights : hostile_weights()) {
    const auto fractions = fractions_of(AliasTable(weights));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_TRUE(weights[i] > 0 || fractions[i] == 0) << i << " of " << weights.size();
    }
    EXPECT_EQ(std::accumulate(fractions.begin(), fractions.end(), std::uint64_t{0}), weights.size()
                                                                                         << 32);
  }
}

TEST(AliasTable, NeverDrawsASampleOfWeightZero) {
  std::vector<std::uint64_t> draws(1'000'000);
  for (const Weights& weights : hostile_weights()) {
    make_weighted(std::make_shared<const AliasTable>(weights), draws.size(), 3)->fill(0, 0, draws);
    for (const std::uint64_t sample : draws) {
      ASSERT_GT(weights.at(static_cast<std::size_t>(sample)), 0) << "sample " << sample;
    }
  }
}

TEST(AliasTable, HoldsEqualWeightsExactly) {
  for (const std::size_t count : {1U, 2U, 3U, 7U, 1000U, 65537U, 1'000'003U}) {
    for (const double weight : {0.1, 1.0, kLeast, kMost}) {
      const AliasTable table(Weights(count, weight));
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto [threshold, alias] = table.columns()[i];
        ASSERT_TRUE(threshold == 0 && alias == i) << count << " of " << weight << ", column " << i;
      }
    }
  }
}

TEST(AliasTable, CountsOnlyTheRatiosOfWeights) {
  const Weights weights{3, 0, 0.125, 1, 1e-9, 7};
  const auto fractions = fractions_of(AliasTable(weights));
  for (const double factor : {0x1p-1000, 0x1p-30, 0x1p900, 0x1p1020}) {
    Weights scaled = weights;
    for (double& weight : scaled) weight *= factor;
    EXPECT_EQ(fractions_of(AliasTable(scaled)), fractions) << factor;
  }
}

TEST(AliasTable, TakesWeightsWhoseSumNoDoubleHolds) {
  const auto fractions = fractions_of(AliasTable(Weights{kMost, kMost, kMost / 2, kMost / 2}));
  const std::uint64_t third = (std::uint64_t{4} << 32) / 3;
  EXPECT_NEAR(static_cast<double>(fractions[0]), static_cast<double>(third), 1);
  EXPECT_NEAR(static_cast<double>(fractions[3]), static_cast<double>(third) / 2, 1);
}

TEST(AliasTable, IsOneSampleWhereOneWeightOutweighsAllOthers) {
  EXPECT_EQ(fractions_of(AliasTable(Weights{1e-308, 1e308, kLeast})),
            (std::vector<std::uint64_t>{0, std::uint64_t{3} << 32, 0}));
}

// Saved runs draw from these columns. If this test fails, the code is wrong, never the numbers.
TEST(AliasTable, KeepsItsColumnsOverVersionsAndPlatforms) {
  const auto hash_of = [](const Weights& weights) {
    return hash_with(0, std::as_bytes(AliasTable(weights).columns()));
  };
  Weights zipf(1'000'000);
  for (std::size_t i = 0; i < zipf.size(); ++i) zipf[i] = 1 / (1.0 + static_cast<double>(i));
  EXPECT_EQ(hash_of({1, 2, 3, 4}), 7862861542946313082U);
  EXPECT_EQ(hash_of({kLeast, 5 * kLeast, 3 * kLeast}), 1258913586561567923U);
  EXPECT_EQ(hash_of(zipf), 14319035377740524340U);
}

TEST(AliasTable, TakesEightBytesPerWeight) {
  EXPECT_EQ(AliasTable::bytes_for(0), 0U);
  EXPECT_EQ(AliasTable::bytes_for(100'000'000), 800'000'000U);
  const AliasTable table(Weights(1000, 1.5));
  EXPECT_EQ(table.columns().size_bytes(), AliasTable::bytes_for(table.size()));
}

TEST(AliasTable, RefusesWeightsThatAreNoWeights) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string rule = "each must be a finite number, 0 or above";
  EXPECT_EQ(refusal({0, 1, 2, -1, kNan}), "weights: entry 3 is -1; " + rule);
  EXPECT_EQ(refusal({1, -0.25}), "weights: entry 1 is -0.25; " + rule);
  EXPECT_EQ(refusal({-kLeast}), "weights: entry 0 is -5e-324; " + rule);
  EXPECT_EQ(refusal({1, kNan}), "weights: entry 1 is nan; " + rule);
  EXPECT_EQ(refusal({-kNan, 1}), "weights: entry 0 is nan; " + rule);
  EXPECT_EQ(refusal({1, kInfinity}), "weights: entry 1 is inf; " + rule);
  EXPECT_EQ(refusal({-kInfinity}), "weights: entry 0 is -inf; " + rule);
  EXPECT_EQ(refusal({0, 0, -0.0}), "weights: all are 0; at least one must be above 0");
  EXPECT_EQ(refusal({}), "weights: none given; give one per sample");
  EXPECT_EQ(refusal({0, kLeast}), "no error");
}

TEST(AliasTable, RefusesMoreWeightsThanAColumnCanNameBeforeItReadsThem) {
  const double one = 1;
  const std::span<const double> many(&one, std::size_t{1} << 32);
  EXPECT_EQ(thrown<std::invalid_argument>([&] { static_cast<void>(AliasTable(many)); }),
            "weights: 4294967296 given; at most 4294967295 samples can be weighted");
}

}  // namespace
}  // namespace lowtide::weighted_table_test

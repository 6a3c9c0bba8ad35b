#include "order/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/thrown.h"

namespace lowtide::mixture_test {
namespace {

using Weights = std::vector<double>;
using Place = Mixture::Place;

constexpr std::uint64_t kOne = 1;
constexpr double kRounding = 1e-9;  // of this test's own n * weight / sum

double bound(std::size_t sources) {
  return sources == 1 ? 0 : sources == 2 ? 0.5 : sources == 3 ? 1 : 1.45;
}

// How far any source is from its share in any prefix of `positions`. Between two of its samples a
// source only falls behind, so just before and just after each sample are the extremes.
double worst_prefix(const Mixture& mixture, const Weights& weights, std::uint64_t positions) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<std::uint64_t> given(weights.size());
  double worst = 0;
  const auto look = [&](std::size_t source, std::uint64_t n) {
    const double share = static_cast<double>(n) * (weights[source] / sum);
    worst = std::max(worst, std::abs(static_cast<double>(given[source]) - share));
  };
  for (std::uint64_t n = 0; n < positions; ++n) {
    const std::uint32_t source = mixture.at(n).source;
    look(source, n);
    ++given[source];
    look(source, n + 1);
  }
  for (std::size_t source = 0; source < weights.size(); ++source) look(source, positions);
  return worst;
}

void expect_exact(const Weights& weights, std::uint64_t positions = 20'000) {
  SCOPED_TRACE(testing::PrintToString(weights));
  EXPECT_LE(worst_prefix(Mixture(weights), weights, positions), bound(weights.size()) + kRounding);
}

// at() against count() and position_of(), for each of `positions` from `first` on.
void expect_consistent(const Weights& weights, std::uint64_t first, std::uint64_t positions) {
  SCOPED_TRACE(testing::PrintToString(weights));
  const Mixture mixture(weights);
  ASSERT_EQ(mixture.sources(), weights.size());
  std::vector<std::uint64_t> given(weights.size());
  for (std::uint32_t source = 0; source < mixture.sources(); ++source) {
    given[source] = mixture.count(source, first);
  }
  ASSERT_EQ(std::accumulate(given.begin(), given.end(), std::uint64_t{0}), first);
  for (std::uint64_t position = first; position < first + positions; ++position) {
    const Place place = mixture.at(position);
    ASSERT_LT(place.source, mixture.sources());
    ASSERT_EQ(place.index, given[place.source]) << "at position " << position;
    ASSERT_EQ(mixture.position_of(place), position);
    ++given[place.source];
    ASSERT_EQ(mixture.count(place.source, position + 1), given[place.source]);
  }
  for (std::uint32_t source = 0; source < mixture.sources(); ++source) {
    EXPECT_EQ(mixture.count(source, first + positions), given[source]);
  }
}

Weights random_weights(std::mt19937_64& random, std::size_t sources, double spread) {
  std::uniform_real_distribution<double> exponent(-spread, spread);
  Weights weights(sources);
  for (double& weight : weights) weight = std::exp2(exponent(random));
  return weights;
}

// The least that keeps a Huffman tree as deep as it can be: what strays furthest.
Weights fibonacci(std::size_t sources, double tiny, double wobble, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> off(1, 1 + wobble);
  Weights weights{tiny, 1, 1};
  double below = 1;
  double here = 2;
  while (weights.size() < sources) {
    weights.push_back(below * off(random));
    const double above = here + weights.back();
    below = here;
    here = above;
  }
  return weights;
}

std::string refusal(const Weights& weights) {
  return thrown<std::invalid_argument>([&] { const Mixture mixture(weights); });
}

TEST(Mixture, TakesTurnsBetweenEqualSources) {
  const Mixture mixture(Weights{1, 1});
  for (std::uint64_t position = 0; position < 100; ++position) {
    EXPECT_EQ(mixture.at(position),
              (Place{static_cast<std::uint32_t>(position % 2), position / 2}));
  }
}

TEST(Mixture, KeepsEveryPrefixOfTwoSourcesWithinHalfASample) {
  std::mt19937_64 random(2);
  expect_exact({0.7, 0.3});
  expect_exact({1, 1e-9}, 2'000);
  expect_exact({1e-4, 1});
  for (int trial = 0; trial < 60; ++trial) expect_exact(random_weights(random, 2, 8));
}

TEST(Mixture, KeepsEveryPrefixOfManySourcesWithinOneAndAHalf) {
  std::mt19937_64 random(3);
  for (std::size_t sources = 3; sources <= 40; ++sources) {
    for (const double spread : {0.1, 1.0, 3.0, 8.0, 20.0}) {
      expect_exact(random_weights(random, sources, spread));
    }
    expect_exact(Weights(sources, 0.1));
  }
}

TEST(Mixture, KeepsEveryPrefixOfWeightsThatGrowSlowlyWithinOneAndAHalf) {
  for (const double tiny : {1.0, 0.4, 0.3334, 0.33, 0.1, 1e-2, 1e-4, 1e-9}) {
    for (std::size_t sources = 3; sources <= 16; ++sources) {
      expect_exact(fibonacci(sources, tiny, 0, 0));
      expect_exact(fibonacci(sources, tiny, 0.02, sources));
    }
  }
}

TEST(Mixture, KeepsEveryPrefixOfTinyBesideHugeWithinOneAndAHalf) {
  expect_exact({1e-9, 1, 1});
  expect_exact({1, 1e-3, 1, 1e-6, 1, 1e-9, 2, 3, 5});
  Weights steps;
  for (const double ratio : {1.5, 2.9, 3.1, 10.0}) {
    steps.assign(1, 1);
    while (steps.size() < 30) steps.push_back(steps.back() * ratio);
    expect_exact(steps);
    std::reverse(steps.begin(), steps.end());
    expect_exact(steps);
  }
}

// In a plain Huffman tree the first weight is the second's sibling, and the second strays by 1.54
// at position 78464.
TEST(Mixture, KeepsATinySourceFromLeadingItsNeighbourAstray) {
  expect_exact({0.001, 1, 1.029285, 1.010598, 2.074073, 3.124523, 5.170236, 8.240138, 13.534305,
                21.872327, 35.291082, 57.525811},
               100'000);
  expect_exact({0.01, 1, 1.000862, 1.012693, 2.013629, 3.029579, 5.038405, 8.070032, 13.126904},
               100'000);
}

TEST(Mixture, AgreesWithItsCountsAndItsInverseFromTheStart) {
  std::mt19937_64 random(4);
  for (const std::size_t sources : {1U, 2U, 3U, 5U, 12U, 40U}) {
    for (const double spread : {0.0, 2.0, 16.0}) {
      expect_consistent(random_weights(random, sources, spread), 0, 20'000);
    }
  }
  expect_consistent({1, 1e-9}, 0, 1000);
  expect_consistent(fibonacci(20, 1e-3, 0, 0), 0, 20'000);
}

TEST(Mixture, AgreesWithItsCountsAndItsInverseFarOut) {
  std::mt19937_64 random(5);
  for (const std::uint64_t first :
       {std::uint64_t{500'000'000} - 10, std::uint64_t{1'000'000'000'000}, kOne << 61,
        (kOne << 62) - 2000}) {
    SCOPED_TRACE(first);
    expect_consistent({1, 1e-9}, first, 2000);
    expect_consistent({0.7, 0.3}, first, 2000);
    expect_consistent(Weights(7, 1), first, 2000);
    expect_consistent(random_weights(random, 13, 6), first, 2000);
    expect_consistent(fibonacci(20, 1e-3, 0, 0), first, 2000);
  }
}

// Whole weights, so that n * weight / sum can be compared without rounding.
TEST(Mixture, IsAsExactAt2ToThe61AsAtTheStart) {
  __extension__ using Wide = __int128;
  const std::vector<Weights> sets{{7, 3}, {1, 2, 4}, {3, 5, 7, 11, 13}, {1, 1'000'000'000, 999}};
  for (const Weights& weights : sets) {
    const Mixture mixture(weights);
    const auto sum = static_cast<Wide>(std::accumulate(weights.begin(), weights.end(), 0.0));
    for (const std::uint64_t start : {std::uint64_t{1'000'000'000'000}, kOne << 61}) {
      for (std::uint64_t n = start; n < start + 1000; ++n) {
        for (std::uint32_t source = 0; source < mixture.sources(); ++source) {
          const Wide share = static_cast<Wide>(n) * static_cast<Wide>(weights[source]);
          const Wide off = static_cast<Wide>(mixture.count(source, n)) * sum - share;
          // For two sources half a sample, and a share rounded to 2^-64 at 2^61 positions.
          ASSERT_LE(std::max(off, -off) * 16, (weights.size() == 2 ? 9 : 24) * sum)
              << "source " << source << " of " << n << " positions";
        }
      }
    }
  }
}

TEST(Mixture, FindsASourceThatComesSeldom) {
  const Mixture mixture(Weights{1, 1e-9});
  const std::uint64_t first = mixture.position_of({1, 0});
  EXPECT_NEAR(static_cast<double>(first), 5e8, 2);
  EXPECT_EQ(mixture.at(first), (Place{1, 0}));
  EXPECT_NEAR(static_cast<double>(mixture.position_of({1, 1000})), 1.0005e12, 2000);
}

TEST(Mixture, GivesNeverForWhatComesBeyondItsLastPosition) {
  const Mixture mixture(Weights{1, 1e-9, 1e-300});
  EXPECT_EQ(mixture.position_of({1, std::uint64_t{5'000'000'000}}), Mixture::kNever);
  EXPECT_EQ(mixture.position_of({2, 0}), Mixture::kNever);
  EXPECT_EQ(mixture.position_of({0, Mixture::kMostPositions - 1}), Mixture::kNever);
  EXPECT_EQ(mixture.position_of({0, ~std::uint64_t{0}}), Mixture::kNever);
  EXPECT_EQ(mixture.count(2, Mixture::kMostPositions), 0U);
  const Place last = mixture.at(Mixture::kMostPositions - 1);
  EXPECT_EQ(mixture.position_of(last), Mixture::kMostPositions - 1);
}

TEST(Mixture, OfOneSourceIsThatSource) {
  for (const double weight : {1e-300, 1.0, std::numeric_limits<double>::max()}) {
    expect_consistent({weight}, 0, 100);
    expect_consistent({weight}, (kOne << 62) - 100, 100);
  }
}

TEST(Mixture, TakesWeightsAtTheEndsOfWhatADoubleHolds) {
  constexpr double kMost = std::numeric_limits<double>::max();
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  expect_consistent({kMost, kMost, kMost}, 0, 1000);
  expect_consistent({kLeast, kLeast, 3 * kLeast}, 0, 1000);
  expect_consistent({kLeast, kMost, kLeast, kMost / 2}, 0, 1000);
  EXPECT_EQ(Mixture(Weights{kMost, kMost, kMost}).count(1, 3000), 1000U);
  EXPECT_EQ(Mixture(Weights{kLeast, 3 * kLeast}).count(1, 4000), 3000U);
}

TEST(Mixture, CountsOnlyTheRatiosOfWeights) {
  const Mixture parts(Weights{7, 2, 1});
  const Mixture halves(Weights{3.5, 1, 0.5});
  for (std::uint64_t position = 0; position < 5000; ++position) {
    ASSERT_EQ(parts.at(position), halves.at(position));
  }
}

// Saved runs resume by these numbers. If this test fails, the code is wrong, never the numbers.
TEST(Mixture, KeepsItsSequencesOverVersionsAndPlatforms) {
  const auto sources = [](const Weights& weights, std::uint64_t first) {
    const Mixture mixture(weights);
    std::string text;
    for (std::uint64_t p = first; p < first + 32; ++p) text += std::to_string(mixture.at(p).source);
    return text;
  };
  EXPECT_EQ(sources({0.7, 0.3}, 0), "01001000100100100010010010001001");
  EXPECT_EQ(sources({0.7, 0.3}, 1'000'000'000'000), "01001000100100100010010010001001");
  EXPECT_EQ(sources({0.5, 0.2, 0.2, 0.1}, 0), "10203020101020302010102030201010");
  EXPECT_EQ(sources({5, 0.01, 1, 2, 3, 0.1}, 12'345), "30402040340304020403403040250403");
  EXPECT_EQ(sources({5, 0.01, 1, 2, 3, 0.1}, kOne << 61), "40340304020403403040204034030402");
}

TEST(Mixture, RefusesWeightsThatAreNoWeights) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal({1, kNan}), "weights: entry 1 is nan; each must be a number above 0");
  EXPECT_EQ(refusal({-kNan, 1}), "weights: entry 0 is nan; each must be a number above 0");
  EXPECT_EQ(refusal({0.5, 0.5, 0}), "weights: entry 2 is 0; each must be a number above 0");
  EXPECT_EQ(refusal({-0.25}), "weights: entry 0 is -0.25; each must be a number above 0");
  EXPECT_EQ(refusal({1, kInfinity}), "weights: entry 1 is inf; each must be a number above 0");
  EXPECT_EQ(refusal({-kInfinity}), "weights: entry 0 is -inf; each must be a number above 0");
  EXPECT_EQ(refusal({}), "weights: none given; give one per source");
  EXPECT_EQ(refusal(Weights(Mixture::kMostSources + 1, 1.0)),
            "weights: 1048577 given; at most 1048576 sources can be mixed");
  EXPECT_EQ(refusal({1, 2}), "no error");
}

}  // namespace
}  // namespace lowtide::mixture_test

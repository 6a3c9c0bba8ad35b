// Whether the orders look like chance. Every test has fixed seeds, so it passes always or never;
// the weakened orders show that the tests can fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "order/shuffle.h"
#include "support/chance.h"

namespace lowtide::shuffle_statistics_test {
namespace {

constexpr double kPlain = 100;  // standard deviations: what no chance explains

// A 64 x 64 grid of a permutation: the sums of all rows and columns are given, one of them twice.
constexpr double kFixedSums = 64 + 64 - 1;

std::vector<std::uint64_t> window(const Order& order, std::uint64_t epoch, std::uint64_t first,
                                  std::size_t count) {
  std::vector<std::uint64_t> out(count);
  order.fill(epoch, first, out);
  return out;
}

double correlation(const std::vector<std::uint64_t>& x, std::size_t x_first,
                   const std::vector<std::uint64_t>& y, std::size_t count, std::uint64_t size) {
  const double mean = (static_cast<double>(size) - 1) / 2;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double dx = static_cast<double>(x[x_first + i]) - mean;
    const double dy = static_cast<double>(y[i]) - mean;
    sum += dx * dy;
    squares += dx * dx;
  }
  return sum / squares;
}

// Sizes are multiples of 1024, so that cells of equal width hold equally many values.
struct Shape {
  std::uint64_t size;
  std::uint64_t seeds;
  std::size_t window;  // positions looked at, from the middle where not all
};
const std::array<Shape, 3> kShapes{{{1024 * 70, 20, 1024 * 70},
                                    {1024 * 2930, 1, 1024 * 2930},
                                    {std::uint64_t{1024} * 976'562'500, 3, 500'000}}};

std::size_t cell(std::uint64_t value, std::uint64_t size, std::uint64_t cells) {
  return static_cast<std::size_t>(value / (size / cells));
}

// How unevenly samples differ (mod size) whose positions are `lag` apart.
double surprise_of_differences(const Shape& shape, std::size_t lag, unsigned rounds) {
  Counts counts(1024);
  for (std::uint64_t seed = 0; seed < shape.seeds; ++seed) {
    const FeistelShuffle order(shape.size, seed, rounds);
    const auto samples = window(order, 0, (shape.size - shape.window) / 2, shape.window);
    for (std::size_t i = 0; i + lag < samples.size(); ++i) {
      const std::uint64_t ahead = samples[i + lag];
      const std::uint64_t here = samples[i];
      const std::uint64_t difference = ahead >= here ? ahead - here : ahead + shape.size - here;
      ++counts[cell(difference, shape.size, 1024)];
    }
  }
  return surprise(counts);
}

// Positions one row of the network apart share their right half: the longest trace of weakness,
// seen up to four rounds. It is faint in a small network, hence many seeds.
const std::array<Shape, 2> kRowShapes{{{1024 * 70, 200, 1024 * 70}, {1024 * 2930, 3, 1024 * 2930}}};

std::size_t row_of(const Shape& shape) {
  const auto a = static_cast<std::uint64_t>(std::ceil(std::sqrt(static_cast<double>(shape.size))));
  return static_cast<std::size_t>((shape.size - 1) / a + 1);
}

// The order of `count` samples as one number below count!.
std::size_t rank_of(const std::vector<std::uint64_t>& samples) {
  std::size_t rank = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::size_t smaller = 0;
    for (std::size_t j = i + 1; j < samples.size(); ++j) smaller += samples[j] < samples[i] ? 1 : 0;
    rank = rank * (samples.size() - i) + smaller;
  }
  return rank;
}

TEST(ShuffleStatistics, DealsAllOrdersOfFourEquallyOftenOverSeeds) {
  Counts counts(24);
  for (std::uint64_t seed = 0; seed < 24'000; ++seed) {
    ++counts[rank_of(window(*make_shuffle(4, seed), 0, 0, 4))];
  }
  EXPECT_LT(std::abs(surprise(counts)), kChance);
}

TEST(ShuffleStatistics, DealsAllOrdersOfEightEquallyOftenOverEpochs) {
  Counts counts(40'320);
  const auto order = make_shuffle(8, 1);
  std::vector<std::uint64_t> samples(8);
  for (std::uint64_t epoch = 0; epoch < 1'000'000; ++epoch) {
    order->fill(epoch, 0, samples);
    ++counts[rank_of(samples)];
  }
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 0U), 0);
  EXPECT_LT(std::abs(surprise(counts)), kChance);
}

TEST(ShuffleStatistics, SpreadsSamplesEvenlyOverPositions) {
  for (const std::uint64_t size : {1024U, 1024U * 64U, 1024U * 70U, 1024U * 256U}) {
    Counts counts(64 * 64);
    for (std::uint64_t seed = 0; seed < 2'000'000 / size; ++seed) {
      const auto samples = window(*make_shuffle(size, seed), 3, 0, size);
      for (std::size_t i = 0; i < samples.size(); ++i) {
        ++counts[cell(i, size, 64) * 64 + cell(samples[i], size, 64)];
      }
    }
    EXPECT_LT(std::abs(surprise(counts, kFixedSums)), kChance) << size;
  }
}

TEST(ShuffleStatistics, NeighboursDifferUniformly) {
  for (const Shape& shape : kShapes) {
    for (const std::size_t lag : {1U, 2U, 3U, 64U}) {
      EXPECT_LT(std::abs(surprise_of_differences(shape, lag, FeistelShuffle::kRounds)), kChance)
          << shape.size << " at lag " << lag;
    }
  }
}

TEST(ShuffleStatistics, PositionsOneRowApartDifferUniformly) {
  for (const Shape& shape : kRowShapes) {
    const double found = surprise_of_differences(shape, row_of(shape), FeistelShuffle::kRounds);
    EXPECT_LT(std::abs(found), kChance) << shape.size;
  }
}

TEST(ShuffleStatistics, TwoRoundsFailTheNeighbourTest) {
  for (const Shape& shape : {kShapes[0], kShapes[1]}) {
    EXPECT_GT(surprise_of_differences(shape, 1, 2), kPlain) << shape.size;
  }
}

TEST(ShuffleStatistics, FourRoundsFailTheTestOfRows) {
  for (const Shape& shape : kRowShapes) {
    EXPECT_GT(surprise_of_differences(shape, row_of(shape), 4), kPlain) << shape.size;
  }
}

TEST(ShuffleStatistics, NeighboursEpochsAndSeedsAreUncorrelated) {
  for (const Shape& shape : kShapes) {
    const double bound = kChance / std::sqrt(static_cast<double>(shape.window));
    const std::uint64_t first = (shape.size - shape.window) / 2;
    const FeistelShuffle order(shape.size, 12);
    const auto here = window(order, 5, first, shape.window);
    const auto next_epoch = window(order, 6, first, shape.window);
    const auto next_seed = window(FeistelShuffle(shape.size, 13), 5, first, shape.window);
    const auto crossed = window(FeistelShuffle(shape.size, 13), 4, first, shape.window);
    for (const std::size_t lag : {1U, 2U, 7U}) {
      EXPECT_LT(std::abs(correlation(here, lag, here, here.size() - lag, shape.size)), bound);
    }
    for (const auto& other : {next_epoch, next_seed, crossed}) {
      EXPECT_LT(std::abs(correlation(here, 0, other, here.size(), shape.size)), bound);
      Counts counts(64 * 64);
      for (std::size_t i = 0; i < here.size(); ++i) {
        ++counts[cell(here[i], shape.size, 64) * 64 + cell(other[i], shape.size, 64)];
      }
      EXPECT_LT(std::abs(surprise(counts, kFixedSums)), kChance) << shape.size;
    }
  }
}

// A random permutation has k fixed points with probability 1 / (e k!).
TEST(ShuffleStatistics, HasAsManyFixedPointsAsChance) {
  constexpr double kSeeds = 400;
  std::array<double, 5> counts{};
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(kSeeds); ++seed) {
    const auto samples = window(*make_shuffle(65'537, seed), 0, 0, 65'537);
    std::size_t fixed = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) fixed += samples[i] == i ? 1 : 0;
    counts[std::min<std::size_t>(fixed, 4)] += 1;
  }
  const double once = std::exp(-1.0);
  const std::array<double, 5> expected{once, once, once / 2, once / 6, 1 - once * 16 / 6};
  double chi_square = 0;
  for (std::size_t k = 0; k < 5; ++k) {
    const double off = counts[k] - expected[k] * kSeeds;
    chi_square += off * off / (expected[k] * kSeeds);
  }
  EXPECT_LT(chi_square, 18.5);  // 4 degrees of freedom: 1 in 1000
}

// The worst of all pairs (a flipped bit of what `flip` touches, a bit of the sample): how far from
// one half the sample's bit changes, in standard deviations.
template <typename Flip>
double worst_avalanche(unsigned flipped_bits, Flip flip) {
  constexpr int kTrials = 2000;
  std::mt19937_64 random(31);
  double worst = 0;
  for (unsigned bit = 0; bit < flipped_bits; ++bit) {
    std::array<int, 32> changed{};
    for (int trial = 0; trial < kTrials; ++trial) {
      const std::uint64_t difference = flip(random(), std::uint64_t{1} << bit);
      for (unsigned out = 0; out < 32; ++out) changed[out] += (difference >> out & 1) != 0 ? 1 : 0;
    }
    for (const int count : changed) {
      worst = std::max(worst, std::abs(count - kTrials / 2.0) / std::sqrt(kTrials / 4.0));
    }
  }
  return worst;
}

// 2^32 samples: positions and samples are all the numbers of 32 bits, halves of 16 bits.
std::uint64_t sample_at(std::uint64_t seed, std::uint64_t epoch, std::uint64_t position,
                        unsigned rounds = FeistelShuffle::kRounds) {
  return window(FeistelShuffle(std::uint64_t{1} << 32, seed, rounds), epoch, position, 1)[0];
}

TEST(ShuffleStatistics, EveryBitOfPositionSeedAndEpochMovesEveryBitOfTheSample) {
  const auto position = [](std::uint64_t r, std::uint64_t bit) {
    return sample_at(r >> 32, 0, r & 0xFFFFFFFF) ^ sample_at(r >> 32, 0, (r & 0xFFFFFFFF) ^ bit);
  };
  const auto seed = [](std::uint64_t r, std::uint64_t bit) {
    return sample_at(r, 0, r >> 32) ^ sample_at(r ^ bit, 0, r >> 32);
  };
  const auto epoch = [](std::uint64_t r, std::uint64_t bit) {
    return sample_at(3, r, r >> 32) ^ sample_at(3, r ^ bit, r >> 32);
  };
  EXPECT_LT(worst_avalanche(32, position), 5);
  EXPECT_LT(worst_avalanche(64, seed), 5);
  EXPECT_LT(worst_avalanche(64, epoch), 5);
}

TEST(ShuffleStatistics, TwoRoundsFailTheAvalancheTest) {
  const auto position = [](std::uint64_t r, std::uint64_t bit) {
    const std::uint64_t p = r & 0xFFFFFFFF;
    return sample_at(r >> 32, 0, p, 2) ^ sample_at(r >> 32, 0, p ^ bit, 2);
  };
  EXPECT_GT(worst_avalanche(32, position), 20);
}

}  // namespace
}  // namespace lowtide::shuffle_statistics_test

#include "order/shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lowtide::shuffle_test {
namespace {

using Kernel = FeistelShuffle::Kernel;
constexpr std::uint64_t kOne = 1;

std::vector<std::uint64_t> samples_of(const Order& order, std::uint64_t epoch, std::uint64_t first,
                                      std::uint64_t count) {
  std::vector<std::uint64_t> out(static_cast<std::size_t>(count));
  order.fill(epoch, first, out);
  return out;
}

// Every sample exactly once, and position_of finds it again at every `stride`-th position.
void expect_permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch) {
  SCOPED_TRACE(size);
  const auto order = make_shuffle(size, seed);
  ASSERT_EQ(order->size(), size);
  EXPECT_FALSE(order->sequential());
  const std::vector<std::uint64_t> samples = samples_of(*order, epoch, 0, size);
  std::vector<bool> seen(static_cast<std::size_t>(size));
  for (const std::uint64_t sample : samples) {
    ASSERT_LT(sample, size);
    ASSERT_FALSE(seen[static_cast<std::size_t>(sample)]) << sample << " comes twice";
    seen[static_cast<std::size_t>(sample)] = true;
  }
  const std::size_t stride = size > 300'000 ? 13 : 1;
  for (std::size_t position = 0; position < samples.size(); position += stride) {
    ASSERT_EQ(order->position_of(epoch, samples[position]), position);
  }
  std::vector<std::uint64_t> positions(static_cast<std::size_t>(size));
  ASSERT_TRUE(order->positions(epoch, 0, positions));
  for (std::size_t position = 0; position < samples.size(); ++position) {
    ASSERT_EQ(positions[static_cast<std::size_t>(samples[position])], position);
  }
}

TEST(Shuffle, IsAPermutationForEverySizeUpTo300) {
  for (std::uint64_t size = 1; size <= 300; ++size) expect_permutation(size, size * 3, 2);
}

// Sizes just above a power of four are where a Feistel network on bits goes wrong.
TEST(Shuffle, IsAPermutationAroundEveryPowerOfTwo) {
  for (unsigned bits = 9; bits <= 22; ++bits) {
    for (const std::uint64_t size : {(kOne << bits) - 1, kOne << bits, (kOne << bits) + 1}) {
      expect_permutation(size, bits, 1);
    }
  }
}

TEST(Shuffle, IsAPermutationForPrimesAndFullAndNearlyEmptyRows) {
  for (const std::uint64_t size : {7919U, 65521U, 65539U, 104729U, 1299709U}) {
    expect_permutation(size, 11, 0);
  }
  for (const std::uint64_t root : {257U, 1000U, 1733U}) {
    expect_permutation(root * root, 5, 4);
    expect_permutation(root * root + 1, 5, 4);
    expect_permutation(root * (root - 1), 5, 4);
    expect_permutation(root * (root - 1) + 1, 5, 4);
  }
}

TEST(Shuffle, IsAPermutationForManySeedsAndEpochs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) expect_permutation(65537, seed, 1000 - seed);
  expect_permutation(65537, ~std::uint64_t{0}, ~std::uint64_t{0});
  expect_permutation(65536, ~std::uint64_t{0}, ~std::uint64_t{0});
}

TEST(Shuffle, FindsEverySampleOfHugeSizesAgain) {
  std::mt19937_64 random(99);
  for (const std::uint64_t size : {kOne << 31, kOne << 32, (kOne << 32) + 1, (kOne << 40) + 7,
                                   std::uint64_t{1'000'000'000'000}, (kOne << 62) + 1,
                                   (kOne << 63) - 25, (kOne << 63) - 1, kOne << 63}) {
    SCOPED_TRACE(size);
    const auto order = make_shuffle(size, 21);
    for (int trial = 0; trial < 2000; ++trial) {
      const std::uint64_t count = trial % 2 == 0 ? 1 : 80;
      const std::uint64_t last = size - count;
      const std::uint64_t first = trial == 1 ? last : random() % (last + 1);
      const std::vector<std::uint64_t> samples = samples_of(*order, 3, first, count);
      for (std::uint64_t i = 0; i < count; ++i) {
        ASSERT_LT(samples[i], size);
        ASSERT_EQ(order->position_of(3, samples[i]), first + i);
      }
      std::vector<std::uint64_t> positions(count);
      ASSERT_TRUE(order->positions(3, first, positions));
      for (std::uint64_t i = 0; i < count; ++i) {
        ASSERT_EQ(order->position_of(3, first + i), positions[i]);
      }
    }
    std::vector<std::uint64_t> beyond(2);
    EXPECT_FALSE(order->positions(3, size - 1, beyond));
  }
}

TEST(Shuffle, GivesTheSameSamplesInPiecesOfAnySize) {
  std::mt19937_64 random(5);
  for (const std::uint64_t size : {std::uint64_t{1000}, std::uint64_t{65536}, std::uint64_t{65537},
                                   std::uint64_t{3'000'000}, (kOne << 32) + 1, kOne << 63}) {
    const auto order = make_shuffle(size, 8);
    const std::uint64_t count = std::min<std::uint64_t>(size, 5000);
    for (const std::uint64_t start : {std::uint64_t{0}, (size - count) / 2, size - count}) {
      const std::vector<std::uint64_t> whole = samples_of(*order, 6, start, count);
      std::vector<std::uint64_t> pieces;
      while (pieces.size() < count) {
        const std::uint64_t left = count - pieces.size();
        const std::uint64_t take = std::min<std::uint64_t>(left, random() % 300);
        const auto piece = samples_of(*order, 6, start + pieces.size(), take);
        pieces.insert(pieces.end(), piece.begin(), piece.end());
      }
      EXPECT_EQ(pieces, whole) << size << " from " << start;
      for (std::uint64_t i = 0; i < count; i += 7) {
        ASSERT_EQ(samples_of(*order, 6, start + i, 1)[0], whole[i]);
      }
    }
  }
}

TEST(Shuffle, GivesTheSameSamplesWithoutWideVectors) {
  for (const std::uint64_t size :
       {std::uint64_t{65537}, std::uint64_t{3'000'000}, kOne << 40, kOne << 63}) {
    const FeistelShuffle best(size, 4);
    const FeistelShuffle portable(size, 4, FeistelShuffle::kRounds, Kernel::kPortable);
    for (const std::uint64_t first : {std::uint64_t{0}, size / 3, size - 20'000}) {
      EXPECT_EQ(samples_of(best, 2, first, 20'000), samples_of(portable, 2, first, 20'000));
    }
  }
}

struct Golden {
  std::uint64_t size, seed, epoch, position;
  std::vector<std::uint64_t> samples;
};

// Saved runs resume by these numbers. If this test fails, the code is wrong, never the numbers.
TEST(Shuffle, KeepsItsSequencesOverVersionsAndPlatforms) {
  const std::vector<Golden> promised{
      {8, 0, 0, 0, {7, 5, 0, 4, 1, 2, 3, 6}},
      {1000, 1, 0, 0, {19, 397, 251, 355, 544, 835}},
      {65536, 7, 3, 65530, {12835, 36466, 36702, 18936, 6196, 9305}},
      {65537, 0, 0, 0, {65518, 21924, 38367, 31899, 48582, 24041}},
      {65537, 1, 0, 65531, {12224, 16189, 45342, 39802, 40840, 9914}},
      {262145, 2, 5, 100000, {225558, 223432, 122894, 112054, 214328, 176117}},
      {1048577, 3, 1, 7, {781035, 289656, 815518, 246657, 285353, 957769}},
      {3000000, 0, 0, 0, {474359, 1112970, 2111939, 2551784, 2710786, 605030}},
      {3000000, 0, 1, 0, {2125429, 2280035, 1397806, 434427, 453721, 1853859}},
      {3000000,
       18446744073709551615U,
       18446744073709551615U,
       2999994,
       {949132, 1481327, 1470982, 1166706, 724229, 374319}},
      {4294967296, 5, 0, 2147483648, {3237377376, 430248446, 1594705716, 1792474375}},
      {4294967297, 5, 0, 4294967293, {2023629750, 1486594204, 4053037403, 1878519318}},
      {1000000000000, 6, 2, 999999999990, {449766138291, 76750104758, 252612928969, 712923599422}},
      {9223372036854775783,
       9,
       0,
       4611686018427387904,
       {2127037700364927559, 3007294733656240788, 1238359933054763742, 5210886855228703407}},
      {9223372036854775808U,
       9,
       0,
       9223372036854775804,
       {1899945029303946778, 5609668036624564654, 1178986872000946272, 2051304735329869878}},
  };
  for (const Golden& golden : promised) {
    const auto order = make_shuffle(golden.size, golden.seed);
    EXPECT_EQ(samples_of(*order, golden.epoch, golden.position, golden.samples.size()),
              golden.samples)
        << golden.size << " samples, seed " << golden.seed;
  }
}

// The digest covers whole epochs, so also the blocks and the walks that single values miss.
TEST(Shuffle, KeepsItsWholeEpochsOverVersionsAndPlatforms) {
  const auto digest = [](std::uint64_t size) {
    std::uint64_t sum = 0;
    for (const std::uint64_t sample : samples_of(*make_shuffle(size, 42), 9, 0, size)) {
      sum = sum * 0x5851F42D4C957F2D + sample;
    }
    return sum;
  };
  EXPECT_EQ(digest(65536), 16476862116741552212U);
  EXPECT_EQ(digest(65537), 11819540290918603540U);
  EXPECT_EQ(digest(262145), 9691138837939022892U);
}

TEST(Shuffle, DiffersBySeedEpochAndSize) {
  for (const std::uint64_t size : {1000U, 100'000U}) {
    std::set<std::vector<std::uint64_t>> beginnings;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
        beginnings.insert(samples_of(*make_shuffle(size, seed), epoch, 0, 12));
      }
    }
    EXPECT_EQ(beginnings.size(), 400U);
    const auto here = samples_of(*make_shuffle(size, 1), 0, 0, 900);
    const auto larger = samples_of(*make_shuffle(size + 1, 1), 0, 0, 900);
    std::size_t same = 0;
    for (std::size_t i = 0; i < here.size(); ++i) same += here[i] == larger[i] ? 1 : 0;
    EXPECT_LT(same, 8U);
  }
}

TEST(Shuffle, MayBeEmptyAndRefusesMoreThanTwoToThe63) {
  const auto empty = make_shuffle(0, 1);
  EXPECT_EQ(empty->size(), 0U);
  empty->fill(0, 0, {});
  EXPECT_EQ(empty->position_of(0, 0), std::nullopt);
  EXPECT_EQ(make_shuffle(70'000, 1)->position_of(0, 70'000), std::nullopt);
  EXPECT_THROW(static_cast<void>(make_shuffle((kOne << 63) + 1, 1)), std::invalid_argument);
  EXPECT_THROW(TableShuffle(65537, 1), std::invalid_argument);
  EXPECT_THROW(FeistelShuffle(65536, 1), std::invalid_argument);
  EXPECT_THROW(FeistelShuffle(70'000, 1, 17), std::invalid_argument);
}

TEST(Shuffle, ServesThreadsThatAskForDifferentEpochs) {
  for (const std::uint64_t size : {500U, 70'000U}) {
    const auto order = make_shuffle(size, 77);
    std::vector<std::vector<std::uint64_t>> expected;
    for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
      expected.push_back(samples_of(*make_shuffle(size, 77), epoch, 0, 500));
    }
    std::vector<int> wrong(4, 0);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::uint64_t turn = 0; turn < 400; ++turn) {
          const std::uint64_t epoch = (turn / 3 + t) % 4;
          const auto samples = samples_of(*order, epoch, 0, 500);
          if (samples != expected[epoch]) ++wrong[t];
          if (order->position_of(epoch, samples[turn]) != turn) ++wrong[t];
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, std::vector<int>(4, 0));
  }
}

}  // namespace
}  // namespace lowtide::shuffle_test

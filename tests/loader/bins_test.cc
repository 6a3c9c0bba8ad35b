#include "loader/bins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace lowtide::bins_test {
namespace {

using Met = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // samples and their places

// Everything from here to the end of the part.
Met rest_of_part(Bins& bins, std::uint64_t most) {
  Met met;
  while (bins.left() > 0) {
    const auto keys = bins.take(most);
    if (keys.empty()) break;
    EXPECT_LE(keys.size(), most);
    for (const std::uint64_t key : keys) met.emplace_back(bins.sample_of(key), bins.place_of(key));
  }
  return met;
}

TEST(Bins, GivesSamplesInFileOrder) {
  std::mt19937_64 random(1);
  for (const std::uint64_t size : {1UL, 2UL, 1000UL, 3'000'000UL, 1UL << 40}) {
    for (const std::uint64_t many : {1UL, 100UL, 20'000UL}) {
      Bins bins;
      bins.reset(size, many, Bins::bits_for(many), 1);
      Met added;
      for (std::uint64_t place = 0; place < many; ++place) {
        added.emplace_back(random() % size, place);
        bins.add(added.back().first, place);
      }
      EXPECT_EQ(bins.left(), many);
      Met met = rest_of_part(bins, 77);
      EXPECT_TRUE(std::ranges::is_sorted(met, {}, &Met::value_type::first));
      std::ranges::sort(met);
      std::ranges::sort(added);
      EXPECT_EQ(met, added);
      EXPECT_EQ(bins.left(), 0U);
      EXPECT_TRUE(bins.at_start());
    }
  }
}

TEST(Bins, MeetsWhatIsAddedBehindTheSweepInTheNextOne) {
  Bins bins;
  bins.reset(1 << 20, 1 << 20, 4, 1);  // many bins
  bins.add(500'000, 1);
  bins.add(900'000, 2);
  ASSERT_EQ(bins.take(1).size(), 1U);
  bins.add(100'000, 3);
  bins.add(800'000, 4);
  EXPECT_EQ(rest_of_part(bins, 10), (Met{{800'000, 4}, {900'000, 2}}));
  EXPECT_EQ(bins.left(), 1U);
  EXPECT_EQ(rest_of_part(bins, 10), (Met{{100'000, 3}}));
}

TEST(Bins, MeetsEverySampleOncePerPart) {
  Bins bins;
  bins.reset(100, 3, 2, 3);
  bins.add(70, 0);
  bins.add(5, 1);
  EXPECT_EQ(bins.left(), 6U);
  for (std::uint64_t part = 0; part < 3; ++part) {
    EXPECT_EQ(bins.part(), part);
    EXPECT_EQ(rest_of_part(bins, 10), (Met{{5, 1}, {70, 0}}));
  }
  EXPECT_TRUE(bins.at_start());
}

TEST(Bins, ForgetsWhatIsRemoved) {
  Bins bins;
  bins.reset(100, 4, 3, 2);
  for (const std::uint64_t place : {0, 1, 2, 3, 4}) bins.add(place * 7, place);
  bins.remove(1, 3);
  EXPECT_EQ(bins.left(), 3 * 2U);
  EXPECT_EQ(rest_of_part(bins, 10), (Met{{0, 0}, {21, 3}, {28, 4}}));
}

}  // namespace
}  // namespace lowtide::bins_test

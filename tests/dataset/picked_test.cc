// The indices of picked columns, found by every kernel and by a plain loop over all of them.
#include "dataset/picked.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace lowtide {
namespace {

using Picks = std::vector<std::uint64_t>;

// Numbers below `columns`, each of which comes with this probability, in ascending order.
template <typename T>
std::vector<T> some_of(std::uint64_t columns, double share, std::mt19937& random) {
  std::vector<T> found;
  std::bernoulli_distribution comes(share);
  for (std::uint64_t column = 0; column < columns; ++column) {
    if (comes(random)) found.push_back(static_cast<T>(column));
  }
  return found;
}

// Every place that each picked index goes to, by a look at all picks.
template <typename Index>
std::vector<std::vector<std::int32_t>> places_by_hand(const std::vector<Index>& indices,
                                                      const Picks& picks) {
  std::vector<std::vector<std::int32_t>> all;
  for (const Index index : indices) {
    std::vector<std::int32_t> places;
    for (std::size_t i = 0; i < picks.size(); ++i) {
      if (picks[i] == static_cast<std::uint64_t>(index)) {
        places.push_back(static_cast<std::int32_t>(i));
      }
    }
    all.push_back(std::move(places));
  }
  return all;
}

template <typename Index>
void expect_found(const PickedColumns& columns, TokenType type, const std::vector<Index>& indices,
                  const Picks& picks) {
  const auto expected = places_by_hand(indices, picks);
  const std::vector<double> values(indices.size());
  for (const auto kernel : {PickKernel::kPortable, PickKernel::kAvx2, PickKernel::kAvx512}) {
    SCOPED_TRACE("kernel " + std::to_string(static_cast<int>(kernel)));
    PickedColumns::Hits hits;
    const PickedColumns::Row row{.indices = reinterpret_cast<const std::byte*>(indices.data()),
                                 .values = reinterpret_cast<const std::byte*>(values.data()),
                                 .value_bytes = sizeof(double),
                                 .count = indices.size()};
    const std::size_t found = columns.find(type, row, hits, kernel);
    std::size_t hit = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (expected[i].empty()) continue;
      ASSERT_LT(hit, found);
      ASSERT_EQ(hits.at[hit], i);
      std::vector<std::int32_t> places;
      for (std::int32_t at = hits.place[hit]; at >= 0; at = columns.next_place(at)) {
        places.push_back(at);
      }
      ASSERT_EQ(places, expected[i]);
      ++hit;
    }
    ASSERT_EQ(hit, found);
  }
}

template <typename Index>
void expect_type(TokenType type) {
  using Limits = std::numeric_limits<Index>;
  const std::uint64_t most = static_cast<std::uint64_t>(Limits::max());
  const std::uint64_t columns = std::min<std::uint64_t>(3333, most < 1000 ? most + 1 : most);
  std::mt19937 random(static_cast<unsigned>(type) + 1);
  for (const double picked_share : {0.0, 0.1, 0.5, 1.0}) {
    Picks picks = some_of<std::uint64_t>(columns, picked_share, random);
    picks.push_back(columns - 1);
    for (const bool repeated : {false, true}) {
      std::ranges::shuffle(picks, random);
      if (repeated) picks.insert(picks.end(), picks.begin(), picks.begin() + 1);
      const PickedColumns chosen(columns, picks);
      EXPECT_EQ(chosen.width(), picks.size());
      // Dense rows are found by windows, thin ones one by one, and those between by both.
      for (const double share : {1.0, 0.2, 0.03, 0.01, 0.002}) {
        std::vector<Index> indices = some_of<Index>(columns, share, random);
        expect_found(chosen, type, indices, picks);
        indices.insert(indices.end(), indices.begin(), indices.begin() + indices.size() / 2);
        std::ranges::shuffle(indices, random);
        expect_found(chosen, type, indices, picks);
      }
    }
  }
}

TEST(PickedColumns, EveryKernelFindsTheSameInEveryType) {
  expect_type<std::uint8_t>(TokenType::u8);
  expect_type<std::int8_t>(TokenType::i8);
  expect_type<std::uint16_t>(TokenType::u16);
  expect_type<std::int16_t>(TokenType::i16);
  expect_type<std::uint32_t>(TokenType::u32);
  expect_type<std::int32_t>(TokenType::i32);
  expect_type<std::uint64_t>(TokenType::u64);
  expect_type<std::int64_t>(TokenType::i64);
}

TEST(PickedColumns, RowsMayHaveAnyLength) {
  std::mt19937 random(7);
  const Picks picks = some_of<std::uint64_t>(100, 0.3, random);
  const PickedColumns chosen(100, picks);
  for (std::size_t length = 0; length < 70; ++length) {
    std::vector<std::int32_t> indices(length);
    for (std::int32_t& index : indices) index = static_cast<std::int32_t>(random() % 100);
    expect_found(chosen, TokenType::i32, indices, picks);
  }
}

TEST(PickedColumns, KnowsWhetherAColumnIsRepeated) {
  EXPECT_FALSE(PickedColumns(10, {3, 1, 9}).repeated());
  EXPECT_TRUE(PickedColumns(10, {3, 1, 3}).repeated());
}

TEST(PickedColumns, RefusesColumnsThatDoNotExist) {
  EXPECT_THROW(PickedColumns(4, {4}), std::out_of_range);
  EXPECT_THROW(PickedColumns(std::uint64_t{1} << 31U, {0}), std::invalid_argument);
}

}  // namespace
}  // namespace lowtide

#include "order/subset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "order/random.h"
#include "support/thrown.h"

namespace lowtide::subset_test {
namespace {

using Rows = std::vector<std::uint64_t>;

constexpr std::uint64_t kMostRows = std::uint64_t{1} << 63;
constexpr std::uint64_t kSeed = 5;

template <typename T>
Subset subset_of(const std::vector<T>& rows, std::uint64_t limit = kMostRows) {
  return {RowList(std::span<const T>(rows)), limit};
}

Subset subset_of(const RowRange& rows, std::uint64_t limit = kMostRows) {
  return {rows, limit};
}

Rows rows_of(const RowRange& stride) {
  Rows rows;
  auto row = static_cast<std::int64_t>(stride.first);
  for (std::uint64_t i = 0; i < stride.count; ++i, row += stride.step) {
    rows.push_back(static_cast<std::uint64_t>(row));
  }
  return rows;
}

const std::vector<RowRange>& strides() {
  static const std::vector<RowRange> all{{0, 1, 1},      {0, 1, 100},   {7, 1, 50},
                                         {3, 5, 40},     {99, -1, 100}, {98, -7, 15},
                                         {42, -1000, 1}, {42, 1000, 1}};
  return all;
}

Rows epoch_of(const Order& order, std::uint64_t epoch) {
  Rows out(static_cast<std::size_t>(order.size()));
  order.fill(epoch, 0, out);
  return out;
}

// The same rows without a Subset.
Rows naive(const Rows& rows, const Order& inner, std::uint64_t epoch) {
  Rows out = epoch_of(inner, epoch);
  for (std::uint64_t& index : out) index = rows.at(static_cast<std::size_t>(index));
  return out;
}

std::string refusal(const auto& rows, std::uint64_t limit) {
  return thrown([&] { static_cast<void>(subset_of(rows, limit)); });
}

template <typename T>
class SubsetOf : public testing::Test {};
using EntryTypes = testing::Types<std::int64_t, std::uint64_t, std::int32_t, std::uint32_t>;
TYPED_TEST_SUITE(SubsetOf, EntryTypes);

TYPED_TEST(SubsetOf, MapsEveryPositionOfItsInnerOrder) {
  std::mt19937_64 random(3);
  std::vector<TypeParam> list(500);
  for (TypeParam& row : list) row = static_cast<TypeParam>(random() % 300);
  const Rows rows(list.begin(), list.end());
  const Subset subset = subset_of(list, 300);
  ASSERT_EQ(subset.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(subset[i], rows[i]);
  const auto shuffled = make_subset(subset, make_shuffle(500, kSeed));
  EXPECT_EQ(shuffled->size(), 500U);
  EXPECT_FALSE(shuffled->sequential());
  for (const std::uint64_t epoch : {0U, 3U}) {
    EXPECT_EQ(epoch_of(*shuffled, epoch), naive(rows, *make_shuffle(500, kSeed), epoch));
  }
  const auto drawn = make_subset(subset, make_random(2000, 500, kSeed));
  EXPECT_EQ(epoch_of(*drawn, 1), naive(rows, *make_random(2000, 500, kSeed), 1));
  EXPECT_EQ(drawn->position_of(1, rows[0]), std::nullopt);
}

TYPED_TEST(SubsetOf, FindsTheFirstEntryOfARow) {
  const std::vector<TypeParam> list{8, 2, 9, 2, 8, 0};
  const auto order = make_subset(subset_of(list, 10), make_sequential(6));
  EXPECT_EQ(order->position_of(0, 8), 0U);
  EXPECT_EQ(order->position_of(0, 2), 1U);
  EXPECT_EQ(order->position_of(0, 0), 5U);
  EXPECT_EQ(order->position_of(0, 7), std::nullopt);
  EXPECT_EQ(order->position_of(0, std::numeric_limits<std::uint64_t>::max()), std::nullopt);
  EXPECT_FALSE(order->sequential());
}

TYPED_TEST(SubsetOf, NamesTheFirstEntryBeyondTheRows) {
  EXPECT_EQ(refusal(std::vector<TypeParam>{0, 9, 3, 4, 9, 12, 13}, 10),
            "rows: entry 5 is 12, but there are 10 rows");
  EXPECT_EQ(refusal(std::vector<TypeParam>{0, 1}, 1), "rows: entry 1 is 1, but there is 1 row");
  EXPECT_EQ(refusal(std::vector<TypeParam>{0, 9}, 10), "no error");
}

TYPED_TEST(SubsetOf, HasTheHashOfAnEqualRowRange) {
  for (const RowRange& stride : strides()) {
    const Rows rows = rows_of(stride);
    EXPECT_EQ(subset_of(std::vector<TypeParam>(rows.begin(), rows.end())).hash(kSeed),
              subset_of(stride).hash(kSeed))
        << stride.first << " " << stride.step << " " << stride.count;
  }
}

TEST(Subset, MapsEveryPositionOfARowRange) {
  for (const RowRange& stride : strides()) {
    const Rows rows = rows_of(stride);
    const Subset subset = subset_of(stride, 500);
    ASSERT_EQ(subset.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(subset[i], rows[i]);
    const auto order = make_subset(subset, make_shuffle(rows.size(), kSeed));
    EXPECT_EQ(epoch_of(*order, 2), naive(rows, *make_shuffle(rows.size(), kSeed), 2));
  }
}

TEST(Subset, KnowsTheInverseOfItsInnerOrder) {
  for (const RowRange& stride : strides()) {
    const Rows rows = rows_of(stride);
    const auto by_stride = make_subset(subset_of(stride), make_shuffle(rows.size(), kSeed));
    const auto by_list = make_subset(subset_of(rows), make_shuffle(rows.size(), kSeed));
    const Rows samples = epoch_of(*by_stride, 4);
    for (std::uint64_t row = 0; row < 500; ++row) {
      const auto found = std::find(samples.begin(), samples.end(), row);
      const auto expected =
          found == samples.end()
              ? std::nullopt
              : std::optional(static_cast<std::uint64_t>(found - samples.begin()));
      ASSERT_EQ(by_stride->position_of(4, row), expected) << row;
      ASSERT_EQ(by_list->position_of(4, row), expected) << row;
    }
  }
}

TEST(Subset, HandlesTheLargestRowRanges) {
  constexpr std::int64_t kMostStep = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeastStep = std::numeric_limits<std::int64_t>::min();
  const Subset up = subset_of(RowRange{0, kMostStep, 2});
  EXPECT_EQ(up[1], kMostRows - 1);
  EXPECT_EQ(up.index_of(kMostRows - 1), 1U);
  EXPECT_EQ(up.index_of(2 * (kMostRows - 1)), std::nullopt);
  const Subset all = subset_of(RowRange{kMostRows - 1, -1, kMostRows});
  EXPECT_EQ(all[kMostRows - 1], 0U);
  EXPECT_EQ(all.index_of(0), kMostRows - 1);
  EXPECT_EQ(all.index_of(kMostRows), std::nullopt);
  EXPECT_EQ(refusal(RowRange{0, kMostStep, 3}, kMostRows),
            "rows: entry 2 is 18446744073709551614, but there are 9223372036854775808 rows");
  EXPECT_EQ(refusal(RowRange{0, kLeastStep, 2}, kMostRows),
            "rows: entry 1 is -9223372036854775808, but there are 9223372036854775808 rows");
  EXPECT_EQ(refusal(RowRange{5, 1, std::numeric_limits<std::uint64_t>::max()}, 10),
            "rows: entry 5 is 10, but there are 10 rows");
}

TEST(Subset, IsSequentialWhereBothAre) {
  const auto sequential = [](const RowRange& stride, std::unique_ptr<Order> inner) {
    return make_subset(subset_of(stride), std::move(inner))->sequential();
  };
  EXPECT_TRUE(sequential({7, 1, 50}, make_sequential(50)));
  EXPECT_FALSE(sequential({7, 1, 50}, make_shuffle(50, kSeed)));
  EXPECT_FALSE(sequential({7, 2, 50}, make_sequential(50)));
  EXPECT_FALSE(sequential({70, -1, 50}, make_sequential(50)));
}

TEST(Subset, HashesTheRowsTheirOrderAndTheSeed) {
  const Rows rows{5, 9, 1, 1, 7};
  const std::uint64_t hash = subset_of(rows).hash(kSeed);
  EXPECT_EQ(subset_of(rows).hash(kSeed), hash);
  EXPECT_EQ(subset_of(std::vector<std::int32_t>(rows.begin(), rows.end())).hash(kSeed), hash);
  EXPECT_NE(subset_of(rows).hash(kSeed + 1), hash);
  for (const Rows& other :
       {Rows{9, 5, 1, 1, 7}, Rows{5, 9, 1, 1}, Rows{5, 9, 1, 7}, Rows{5, 9, 1, 1, 8}}) {
    EXPECT_NE(subset_of(other).hash(kSeed), hash);
  }
  const std::uint64_t stride = subset_of(RowRange{3, 5, 40}).hash(kSeed);
  EXPECT_NE(subset_of(RowRange{3, 5, 41}).hash(kSeed), stride);
  EXPECT_NE(subset_of(RowRange{3, 6, 40}).hash(kSeed), stride);
  EXPECT_NE(subset_of(RowRange{4, 5, 40}).hash(kSeed), stride);
  EXPECT_NE(subset_of(RowRange{198, -5, 40}).hash(kSeed), stride);
}

// Saved states contain these hashes. If this test fails, the code is wrong, never the numbers.
TEST(Subset, KeepsItsHashesOverVersionsAndPlatforms) {
  EXPECT_EQ(subset_of(Rows{5, 9, 1, 1, 7}).hash(kSeed), 9991806286790880226U);
  EXPECT_EQ(subset_of(RowRange{98, -7, 15}).hash(kSeed), 3352387773463332317U);
}

TEST(Subset, RefusesAnEmptySelectionAndAStepOf0) {
  const std::string empty = "rows: the selection is empty; select at least one row";
  EXPECT_EQ(thrown<std::invalid_argument>([] { static_cast<void>(subset_of(Rows{}, 10)); }), empty);
  EXPECT_EQ(thrown<std::invalid_argument>([] { static_cast<void>(subset_of(RowRange{}, 10)); }),
            empty);
  EXPECT_EQ(
      thrown<std::invalid_argument>([] { static_cast<void>(subset_of(RowRange{0, 0, 3}, 10)); }),
      "rows: the step is 0; use 1 for every row");
}

TEST(Subset, NamesTheFirstRowOfARowRangeThatDoesNotExist) {
  EXPECT_EQ(refusal(RowRange{10, 1, 3}, 10), "rows: entry 0 is 10, but there are 10 rows");
  EXPECT_EQ(refusal(RowRange{10, -1, 3}, 10), "rows: entry 0 is 10, but there are 10 rows");
  EXPECT_EQ(refusal(RowRange{0, 3, 4}, 9), "rows: entry 3 is 9, but there are 9 rows");
  EXPECT_EQ(refusal(RowRange{0, 3, 3}, 9), "no error");
  EXPECT_EQ(refusal(RowRange{5, -3, 3}, 9), "rows: entry 2 is -1, but there are 9 rows");
  EXPECT_EQ(refusal(RowRange{5, -3, 2}, 9), "no error");
  EXPECT_EQ(refusal(RowRange{0, 1, 1}, 0), "rows: entry 0 is 0, but there are 0 rows");
  EXPECT_EQ(refusal(std::vector<std::int64_t>{3, -2}, 10),
            "rows: entry 1 is -2, but there are 10 rows");
}

}  // namespace
}  // namespace lowtide::subset_test

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "order/order.h"
#include "support/thrown.h"

namespace lowtide::explicit_test {
namespace {

template <typename T>
std::unique_ptr<Order> order_of(const std::vector<T>& samples, std::uint64_t limit) {
  return make_explicit(std::span<const T>(samples), limit);
}

template <typename T>
std::string refusal(const std::vector<T>& samples, std::uint64_t limit) {
  return thrown<std::out_of_range>([&] { static_cast<void>(order_of(samples, limit)); });
}

template <typename T>
class ExplicitOf : public testing::Test {};
using EntryTypes = testing::Types<std::int64_t, std::uint64_t, std::int32_t, std::uint32_t>;
TYPED_TEST_SUITE(ExplicitOf, EntryTypes);

TYPED_TEST(ExplicitOf, GivesTheEntriesAsTheyStandDuplicatesToo) {
  const std::vector<TypeParam> samples{5, 0, 9, 5, 5};
  const auto order = order_of(samples, 10);
  ASSERT_EQ(order->size(), 5U);
  EXPECT_FALSE(order->sequential());
  for (const std::uint64_t epoch : {0U, 3U}) {
    std::vector<std::uint64_t> out(4);
    order->fill(epoch, 1, out);
    EXPECT_EQ(out, (std::vector<std::uint64_t>{0, 9, 5, 5}));
    EXPECT_EQ(order->position_of(epoch, 9), std::nullopt);
  }
}

TYPED_TEST(ExplicitOf, NamesTheFirstEntryBeyondTheRows) {
  std::vector<TypeParam> samples(5000, 2999999);
  EXPECT_EQ(refusal(samples, 3000000), "no error");
  samples[4999] = 3000000;
  EXPECT_EQ(refusal(samples, 3000000), "order: entry 4999 is 3000000, but there are 3000000 rows");
  samples[1500] = 3000002;
  samples[17] = 3000001;
  EXPECT_EQ(refusal(samples, 3000000), "order: entry 17 is 3000001, but there are 3000000 rows");
}

TYPED_TEST(ExplicitOf, TakesTheLargestValueOfItsTypeWhereThereAreMoreRows) {
  const std::vector<TypeParam> samples{std::numeric_limits<TypeParam>::max()};
  const auto largest = static_cast<std::uint64_t>(samples[0]);
  if (largest < std::numeric_limits<std::uint64_t>::max()) {
    std::vector<std::uint64_t> out(1);
    order_of(samples, largest + 1)->fill(0, 0, out);
    EXPECT_EQ(out[0], largest);
  }
  EXPECT_EQ(refusal(samples, largest), "order: entry 0 is " + std::to_string(largest) +
                                           ", but there are " + std::to_string(largest) + " rows");
}

TYPED_TEST(ExplicitOf, MayBeEmptyEvenWhereThereAreNoRows) {
  const std::vector<TypeParam> none;
  EXPECT_EQ(order_of(none, 0)->size(), 0U);
  EXPECT_EQ(refusal(std::vector<TypeParam>{0}, 0), "order: entry 0 is 0, but there are 0 rows");
  EXPECT_EQ(refusal(std::vector<TypeParam>{0, 1}, 1), "order: entry 1 is 1, but there is 1 row");
}

// As unsigned numbers of their own width these would be below the limit.
TEST(Explicit, RefusesNegativeEntriesHoweverManyRowsThereAre) {
  constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(refusal(std::vector<std::int32_t>{3, -1}, 10'000'000'000),
            "order: entry 1 is -1, but there are 10000000000 rows");
  EXPECT_EQ(refusal(std::vector<std::int64_t>{3, -2}, kAll),
            "order: entry 1 is -2, but there are 18446744073709551615 rows");
  EXPECT_EQ(refusal(std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()}, 8),
            "order: entry 0 is -9223372036854775808, but there are 8 rows");
}

}  // namespace
}  // namespace lowtide::explicit_test

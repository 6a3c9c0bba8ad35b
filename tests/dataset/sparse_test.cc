// Rows of a sparse matrix as dense ones, for every type of values, indices and results.
#include "dataset/sparse.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::sparse_test {
namespace {

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename Out>
std::vector<Out> filled(const DenseRows& rows, const std::vector<std::byte>& values,
                        const std::vector<std::byte>& indices, std::size_t count) {
  std::vector<Out> row(rows.width(), Out(77));
  DenseRows::Scratch scratch;
  EXPECT_TRUE(rows.fill(values.data(), indices.data(), count,
                        reinterpret_cast<std::byte*>(row.data()), scratch));
  return row;
}

template <typename Value, typename Index>
void expect_sums(const char* values_name, TokenType type) {
  constexpr std::uint64_t kColumns = 100;
  std::mt19937 random(1);
  std::vector<Value> values;
  std::vector<Index> indices;
  std::vector<double> expected(kColumns, 0.0);
  for (int i = 0; i < 60; ++i) {  // some columns come more than once
    values.push_back(static_cast<Value>(random() % 100));
    indices.push_back(static_cast<Index>(random() % kColumns));
    expected[static_cast<std::size_t>(indices.back())] += static_cast<double>(values.back());
  }
  const DType dtype = DType::parse(values_name);
  const auto raw = bytes_of(values), at = bytes_of(indices);
  const DenseRows wide(dtype, type, kColumns, DenseType::f64, std::nullopt);
  EXPECT_EQ(wide.row_bytes(), kColumns * 8);
  EXPECT_EQ(filled<double>(wide, raw, at, values.size()), expected);
  const DenseRows narrow(dtype, type, kColumns, DenseType::f32, std::nullopt);
  EXPECT_EQ(filled<float>(narrow, raw, at, values.size()),
            std::vector<float>(expected.begin(), expected.end()));
  for (const std::vector<std::uint64_t>& picked :
       {std::vector<std::uint64_t>{5, 99, 0, 5}, std::vector<std::uint64_t>{98, 2, 50}}) {
    const DenseRows some(dtype, type, kColumns, DenseType::f64, picked);
    const auto found = filled<double>(some, raw, at, values.size());
    for (std::size_t i = 0; i < picked.size(); ++i) EXPECT_EQ(found[i], expected[picked[i]]) << i;
  }
}

TEST(DenseRows, AddsUpWhatIsInEachColumn) {
  expect_sums<float, std::int32_t>("<f4", TokenType::i32);
  expect_sums<double, std::int64_t>("<f8", TokenType::i64);
  expect_sums<std::int8_t, std::uint8_t>("|i1", TokenType::u8);
  expect_sums<std::uint8_t, std::int8_t>("|u1", TokenType::i8);
  expect_sums<std::int16_t, std::uint16_t>("<i2", TokenType::u16);
  expect_sums<std::uint16_t, std::int16_t>("<u2", TokenType::i16);
  expect_sums<std::int32_t, std::uint32_t>("<i4", TokenType::u32);
  expect_sums<std::uint64_t, std::uint64_t>("<u8", TokenType::u64);
}

TEST(DenseRows, EveryTruthIsOne) {
  const std::vector<std::uint8_t> values{0, 1, 255};
  const DenseRows rows(DType::parse("|b1"), TokenType::u8, 3, DenseType::f32, std::nullopt);
  EXPECT_EQ(filled<float>(rows, bytes_of(values), bytes_of(std::vector<std::uint8_t>{0, 1, 2}), 3),
            (std::vector<float>{0, 1, 1}));
}

TEST(DenseRows, ReportsAnIndexThatIsNoColumn) {
  std::vector<std::int32_t> indices(1000, 3);
  const auto values = bytes_of(std::vector<float>(indices.size()));
  for (const bool some : {false, true}) {
    std::optional<std::vector<std::uint64_t>> picked;
    if (some) picked = {3, 0};
    const DenseRows rows(DType::parse("<f4"), TokenType::i32, 4, DenseType::f32, picked);
    std::vector<std::byte> row(rows.row_bytes());
    DenseRows::Scratch scratch;
    for (const std::int32_t wrong : {4, 1 << 30, -1}) {
      indices[999] = wrong;
      EXPECT_FALSE(
          rows.fill(values.data(), bytes_of(indices).data(), indices.size(), row.data(), scratch));
    }
    indices[999] = 3;
  }
}

std::uint16_t half_of(float value) {
  const DenseRows rows(DType::parse("<f4"), TokenType::u8, 1, DenseType::f16, std::nullopt);
  return filled<std::uint16_t>(rows, bytes_of(std::vector{value}),
                               bytes_of(std::vector<std::uint8_t>{0}), 1)[0];
}

float of_half(std::uint16_t bits) {
  const DenseRows rows(DType::parse("<f2"), TokenType::u8, 1, DenseType::f32, std::nullopt);
  return filled<float>(rows, bytes_of(std::vector{bits}), bytes_of(std::vector<std::uint8_t>{0}),
                       1)[0];
}

TEST(DenseRows, EveryHalfSurvivesTheWayThroughAFloat) {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = of_half(half);
    if (std::isnan(value)) {
      EXPECT_EQ(half_of(value) & 0x7E00U, 0x7E00U);
      continue;
    }
    // Adding to a zero loses the sign of a negative zero, as a sum should.
    ASSERT_EQ(half_of(value), half == 0x8000U ? 0 : half) << bits;
  }
}

TEST(DenseRows, HalvesAreRoundedToTheNearestEven) {
  EXPECT_EQ(of_half(half_of(2049.0F)), 2048.0F);
  EXPECT_EQ(of_half(half_of(2051.0F)), 2052.0F);
  EXPECT_EQ(of_half(half_of(65519.0F)), 65504.0F);
  EXPECT_TRUE(std::isinf(of_half(half_of(65520.0F))));
  EXPECT_EQ(half_of(std::ldexp(1.0F, -25)), 0);  // half of the least, a tie
  EXPECT_EQ(half_of(std::ldexp(1.5F, -25)), 1);
  EXPECT_EQ(half_of(1e-40F), 0);
}

TEST(DenseRows, RefusesWhatIsNoNumberAndNoColumn) {
  for (const char* name : {"<c8", ">f4", "|S3", "<M8[ns]", "|V2"}) {
    EXPECT_THROW(DenseRows(DType::parse(name), TokenType::i32, 4, DenseType::f32, std::nullopt),
                 std::invalid_argument)
        << name;
  }
  EXPECT_THROW(DenseRows(DType::parse("<f4"), TokenType::i32, 4, DenseType::f32,
                         std::vector<std::uint64_t>{4}),
               std::out_of_range);
  EXPECT_EQ(dense_type_named("int8"), std::nullopt);
}

template <typename T>
void expect_first(TokenType type) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> all(300, T{5});
  const auto find = [&](std::uint64_t below) {
    return first_not_below(type, reinterpret_cast<const std::byte*>(all.data()), all.size(), below);
  };
  EXPECT_EQ(find(6), 300U);
  EXPECT_EQ(find(5), 0U);
  EXPECT_EQ(find(0), 0U);
  EXPECT_EQ(find(~std::uint64_t{0}), 300U);
  all[120] = Limits::max();
  EXPECT_EQ(find(6), 120U);
  EXPECT_EQ(find(static_cast<std::uint64_t>(Limits::max())), 120U);
  if (sizeof(T) < 8) {
    EXPECT_EQ(find(static_cast<std::uint64_t>(Limits::max()) + 1), 300U);
  }
  if (Limits::is_signed) {
    all[7] = T(-1);
    EXPECT_EQ(find(6), 7U);
    EXPECT_EQ(find(~std::uint64_t{0}), 7U);
  }
}

TEST(FirstNotBelow, FindsNegativeAndLargeOnes) {
  expect_first<std::uint8_t>(TokenType::u8);
  expect_first<std::int8_t>(TokenType::i8);
  expect_first<std::uint16_t>(TokenType::u16);
  expect_first<std::int16_t>(TokenType::i16);
  expect_first<std::uint32_t>(TokenType::u32);
  expect_first<std::int32_t>(TokenType::i32);
  expect_first<std::uint64_t>(TokenType::u64);
  expect_first<std::int64_t>(TokenType::i64);
}

}  // namespace
}  // namespace lowtide::sparse_test

// Arrays whose rows are in several places of several files.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "lowtide/array.h"
#include "lowtide/error.h"
#include "support/npy_file.h"

namespace lowtide::array_stretches_test {
namespace {

constexpr std::uint64_t kColumns = 5;

// Rows 0 .. 9, whose elements are their own numbers: 4 of them, then 3, in one file behind other
// bytes, and 3 in another one.
struct Stretched {
  Stretched() {
    std::vector<std::uint32_t> all(10 * kColumns);
    std::iota(all.begin(), all.end(), 0U);
    const std::string text(reinterpret_cast<const char*>(all.data()), all.size() * 4);
    const auto rows = [&](std::size_t first, std::size_t count) {
      return text.substr(first * kColumns * 4, count * kColumns * 4);
    };
    const std::string a = folder.write("a", "xxxx" + rows(4, 3) + "yyyyyyyy" + rows(0, 4));
    const std::string b = folder.write("b", rows(7, 3));
    stretches = {.format = "arrow",
                 .dtype = "'<u4'",
                 .row_shape = {kColumns},
                 .files = {LocatedFile::of(a), LocatedFile::of(b)},
                 .file_numbers = {0, 0, 1},
                 .offsets_bytes = {4 + 3 * kColumns * 4 + 8, 4, 0},
                 .rows = {4, 3, 3}};
  }
  TempFolder folder;
  ArrayStretches stretches;
};

TEST(ArrayStretches, RowsAreReadInOrderAndInAnyOrder) {
  const Stretched made;
  const Array array = Array::open_stretches(made.stretches);
  ASSERT_EQ(array.shape(), (std::vector<std::uint64_t>{10, kColumns}));
  EXPECT_EQ(array.file_rows(), (std::vector<std::uint64_t>{7, 3}));
  std::vector<std::uint32_t> found(10 * kColumns);
  array.read(0, 10, std::as_writable_bytes(std::span(found)));
  for (std::uint32_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], i);
  const std::vector<std::int64_t> rows{9, 3, 4, 0, 7, 6};
  array.take(rows, std::as_writable_bytes(std::span(found)).first(rows.size() * kColumns * 4));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(found[i * kColumns], static_cast<std::uint32_t>(rows[i]) * kColumns);
  }
  const Array flat = array.flat(0);
  flat.read(18, 4, std::as_writable_bytes(std::span(found)).first(16));  // across two stretches
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(found[i], 18 + i);
}

TEST(ArrayStretches, WhatCannotBeIsRefused) {
  const Stretched made;
  ArrayStretches beyond = made.stretches;
  beyond.rows[2] = 4;
  EXPECT_THROW((void)Array::open_stretches(beyond), FormatError);
  beyond.rows[2] = ~std::uint64_t{0} / 8;
  EXPECT_THROW((void)Array::open_stretches(beyond), FormatError);
  ArrayStretches numbers = made.stretches;
  numbers.offsets_bytes = {0, 0, 0};
  numbers.file_numbers = {0, 1, 0};
  EXPECT_THROW((void)Array::open_stretches(numbers), std::invalid_argument);
  numbers.file_numbers = {0, 0, 2};
  EXPECT_THROW((void)Array::open_stretches(numbers), std::invalid_argument);
  numbers.file_numbers = {0, 0};
  EXPECT_THROW((void)Array::open_stretches(numbers), std::invalid_argument);
}

}  // namespace
}  // namespace lowtide::array_stretches_test

// layout.h - what a header promises: where the elements are and what type they have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/dtype.h"

namespace lowtide {

constexpr std::size_t kMaxAxes = 64;  // NumPy's own limit

// What a file says about some of its bytes; `check` compares it.
struct Checksum {
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t crc32 = 0;
};

// Made by make_layout only, which guarantees: `dtype` is not a sub-array (its axes are the last of
// `shape`, as in an ndarray); `shape` has at most kMaxAxes entries; the product of all entries that
// are not 0, times the item size, is below 2^63.
struct Layout {
  std::string format;  // a format word: "npy", "raw"
  DType dtype;
  std::vector<std::uint64_t> shape;  // empty: one element (0-d)
  bool fortran_order = false;  // only with two axes or more: with fewer, both orders are the same
  std::uint64_t data_offset_bytes = 0;
  std::uint64_t data_bytes = 0;  // product of shape times item size; 0 if the item size is 0
  // Bytes before each row that are no data, equal for all rows; data_offset_bytes is after the
  // first of them. Only in C order. Empty: the rows touch.
  std::string row_prefix;
  std::optional<Checksum> checksum;  // of bytes that include all of the data
};

// Checks and completes a layout: moves sub-array axes into the shape and computes data_bytes.
// Throws FormatError, which names `path`, for too many axes, a size of 2^63 bytes or more, or a
// sub-array in Fortran order, which cannot be expressed.
[[nodiscard]] Layout make_layout(Layout layout, const std::string& path);

// Throws FormatError unless a file of `file_bytes` holds all the data. Extra bytes are allowed.
void check_fits(const Layout& layout, std::uint64_t file_bytes, const std::string& path);

// As Python writes it: "()", "(3,)", "(3, 4)".
[[nodiscard]] std::string shape_text(std::span<const std::uint64_t> shape);

}  // namespace lowtide

// The vectors of TEXMEX (SIFT1M, GIST1M) and faiss: every row is its dimension, as int32, and then
// its values. All rows must have the same dimension, so the rows are a fixed distance apart.
//
// The type is in the name of the file. Opening checks the size and the dimensions of the first and
// the last row; `check` compares those of all rows (Layout::row_prefix).
#include <utility>

#include "core/checked.h"
#include "format/array_format.h"
#include "lowtide/error.h"

namespace lowtide::vecs {
namespace {

constexpr std::uint64_t kPrefixBytes = 4;
constexpr std::uint64_t kMaxDimension = 0x7fffffff;

bool matches(const ArrayFormat& format, const ArraySource& source) {
  return source.path.ends_with(format.suffix);
}

std::uint64_t dimension_at(const ArraySource& source, std::uint64_t offset_bytes) {
  if (!fits_inside(offset_bytes, kPrefixBytes, source.file_bytes)) {
    throw FormatError(source.path + ": expected the dimension of a row at byte " +
                      std::to_string(offset_bytes) + ", found the end at byte " +
                      std::to_string(source.file_bytes));
  }
  const std::uint64_t found =
      little_at(read_text(source, offset_bytes, kPrefixBytes), 0, kPrefixBytes);
  if (found >= 1 && found <= kMaxDimension) return found;
  throw FormatError(source.path + ": expected the dimension of a row, 1 or more, at byte " +
                    std::to_string(offset_bytes) + ", found " +
                    std::to_string(static_cast<std::int32_t>(found)));
}

Layout open(const ArrayFormat& format, const ArraySource& source) {
  Layout layout;
  layout.dtype = DType::parse(format.dtype);
  const std::uint64_t dimension = dimension_at(source, 0);
  const std::uint64_t stride_bytes = kPrefixBytes + dimension * layout.dtype.itemsize_bytes;
  if (source.file_bytes % stride_bytes != 0) {
    throw FormatError(source.path + ": expected a multiple of " + std::to_string(stride_bytes) +
                      " bytes for rows of dimension " + std::to_string(dimension) + ", found " +
                      std::to_string(source.file_bytes) + " bytes (" +
                      std::to_string(source.file_bytes % stride_bytes) + " too many)");
  }
  const std::uint64_t rows = source.file_bytes / stride_bytes;
  const std::uint64_t last_bytes = (rows - 1) * stride_bytes;
  if (const std::uint64_t last = dimension_at(source, last_bytes); last != dimension) {
    throw FormatError(source.path + ": row " + std::to_string(rows - 1) + " at byte " +
                      std::to_string(last_bytes) + ": expected dimension " +
                      std::to_string(dimension) + ", as in row 0, found " + std::to_string(last));
  }
  layout.shape = {rows, dimension};
  layout.data_offset_bytes = kPrefixBytes;
  layout.row_prefix = read_text(source, 0, kPrefixBytes);
  return make_layout(std::move(layout), source.path);
}

constexpr ArrayFormat kEntries[] = {
    {.word = "fvecs", .suffix = ".fvecs", .dtype = "<f4", .matches = matches, .open = open},
    {.word = "ivecs", .suffix = ".ivecs", .dtype = "<i4", .matches = matches, .open = open},
    {.word = "bvecs", .suffix = ".bvecs", .dtype = "|u1", .matches = matches, .open = open},
};

}  // namespace

extern const std::span<const ArrayFormat> kFormats;  // for the list of registry.cc
constinit const std::span<const ArrayFormat> kFormats = kEntries;

}  // namespace lowtide::vecs

#include "format/layout.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/checked.h"
#include "core/quote.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kMaxDataBytes = std::numeric_limits<std::int64_t>::max();

void unfold_subarray(Layout& layout, const std::string& path) {
  while (!layout.dtype.element.empty()) {
    // The axes of a sub-array are always the innermost ones, which contradicts Fortran order.
    if (layout.fortran_order && layout.shape.size() > 1) {
      throw FormatError(path +
                        ": expected C order for a sub-array dtype, found Fortran order with " +
                        excerpt(layout.dtype.descr()));
    }
    layout.fortran_order = false;
    const auto& axes = layout.dtype.subshape;
    layout.shape.insert(layout.shape.end(), axes.begin(), axes.end());
    DType element = std::move(layout.dtype.element.front());
    layout.dtype = std::move(element);
  }
}

}  // namespace

Layout make_layout(Layout layout, const std::string& path) {
  unfold_subarray(layout, path);
  if (layout.shape.size() > kMaxAxes) {
    throw FormatError(path + ": expected a shape of at most " + std::to_string(kMaxAxes) +
                      " axes, found " + std::to_string(layout.shape.size()));
  }
  // Axes of length 0 are left out, so that no product of the other axes can wrap either.
  std::uint64_t extent_bytes = std::max<std::uint64_t>(layout.dtype.itemsize_bytes, 1);
  for (const std::uint64_t length : layout.shape) {
    if (length == 0) continue;
    if (!checked_mul(extent_bytes, length, &extent_bytes) || extent_bytes > kMaxDataBytes) {
      throw FormatError(path + ": expected an array of less than 2^63 bytes, found shape " +
                        shape_text(layout.shape) + " of " +
                        std::to_string(layout.dtype.itemsize_bytes) + "-byte items");
    }
  }
  const bool empty = layout.dtype.itemsize_bytes == 0 || std::ranges::count(layout.shape, 0u) > 0;
  layout.data_bytes = empty ? 0 : extent_bytes;
  layout.fortran_order = layout.fortran_order && layout.shape.size() > 1;
  return layout;
}

void check_fits(const Layout& layout, std::uint64_t file_bytes, const std::string& path) {
  if (fits_inside(layout.data_offset_bytes, layout.data_bytes, file_bytes)) return;
  const std::uint64_t found = file_bytes - std::min(file_bytes, layout.data_offset_bytes);
  throw FormatError(
      path + ": expected " + std::to_string(layout.data_bytes) + " bytes of data at byte " +
      std::to_string(layout.data_offset_bytes) + " for shape " + shape_text(layout.shape) + " of " +
      std::to_string(layout.dtype.itemsize_bytes) + "-byte items, found " + std::to_string(found) +
      " bytes (the file has " + std::to_string(file_bytes) + " bytes)");
}

std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(shape[i]);
  }
  return out + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace lowtide

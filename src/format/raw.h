// raw.h - a file without a header: the caller says what is in it, as with np.memmap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/layout.h"

namespace lowtide::raw {

struct Description {
  std::optional<DType> dtype;  // needed: without it parse throws FormatError with the fix in the text
  std::optional<std::vector<std::uint64_t>> shape;  // absent: one axis, as many elements as the file holds
  std::uint64_t offset_bytes = 0;
  bool fortran_order = false;
};

// Throws FormatError: no dtype, an empty file, offset beyond the end, bytes that are not a multiple of the item
// (when no shape is given), a file smaller than the shape needs, a shape that overflows.
[[nodiscard]] Layout describe(const Description& description, std::uint64_t file_bytes,
                              const std::string& path);

}  // namespace lowtide::raw

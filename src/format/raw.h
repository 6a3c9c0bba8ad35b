// raw.h - a file without a header: the caller says what is in it, as with np.memmap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/layout.h"

namespace lowtide::raw {

// What the caller says about a file; nullopt is "not said". A format with a header holds it against
// the header.
struct Description {
  std::optional<DType> dtype;  // needed: without it describe throws with the fix in the text
  std::optional<std::vector<std::uint64_t>> shape;  // absent: one axis, all elements of the file
  std::optional<std::uint64_t> offset_bytes;        // absent: 0
  std::optional<bool> fortran_order;                // absent: false
  bool headerless = false;  // even where the first bytes are those of a header
};

// Throws FormatError: no dtype, an empty file, offset beyond the end, bytes that are not a multiple
// of the item (when no shape is given), a file smaller than the shape needs, a shape that
// overflows.
[[nodiscard]] Layout describe(const Description& description, std::uint64_t file_bytes,
                              const std::string& path);

}  // namespace lowtide::raw

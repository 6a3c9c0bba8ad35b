// raw.h - a file without a header: the caller describes its contents, as with np.memmap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/layout.h"

namespace lowtide::raw {

constexpr std::string_view kWord = "raw";

// What the caller says about a file; nullopt means nothing was said. A format with a header
// compares it with the header.
struct Description {
  std::optional<DType> dtype;  // required; without it, the message of describe says what to do
  std::optional<std::vector<std::uint64_t>> shape;  // absent: one axis, all elements of the file
  std::optional<std::uint64_t> offset_bytes;        // absent: 0
  std::optional<bool> fortran_order;                // absent: false
  bool headerless = false;         // raw data even if the first bytes look like a header
  std::optional<std::string> key;  // of one array in a file that contains several
};

// Throws FormatError for a missing dtype, an empty file, an offset beyond the end, a size that is
// not a multiple of the item size (without a shape), a file that is smaller than the shape needs,
// or a shape that overflows.
[[nodiscard]] Layout describe(const Description& description, std::uint64_t file_bytes,
                              const std::string& path);

}  // namespace lowtide::raw

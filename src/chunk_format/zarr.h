// zarr.h - the words of zarr, and its fill values; chunked_array.h is how others see it.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "lowtide/dtype.h"

namespace lowtide::zarr {

inline constexpr std::string_view kWord = "zarr";
// Version 3, and arrays and groups of version 2.
inline constexpr std::string_view kNodeFile = "zarr.json";
inline constexpr std::string_view kArrayFile = ".zarray";
inline constexpr std::string_view kGroupFile = ".zgroup";

// What an element is that was never written, from the JSON value of fill_value. Throws FormatError.
[[nodiscard]] std::vector<std::byte> parse_fill(std::string_view json, const DType& dtype);

}  // namespace lowtide::zarr

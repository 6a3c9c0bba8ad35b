// descr.h - NumPy's `descr`, the Python literal in which a .npy header and our own calls name a dtype.
#pragma once

#include <string>
#include <string_view>

#include "lowtide/dtype.h"

namespace lowtide {

// "'<f4'", "<f4", "float32", "[('x', '<f4'), ('', '|V4'), ('y', '<i8', (2,))]", "('<f4', (3,))".
// Throws FormatError; object anywhere, also nested, is refused by name.
[[nodiscard]] DType parse_descr(std::string_view text);

}  // namespace lowtide

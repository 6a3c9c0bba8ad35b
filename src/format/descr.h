// descr.h - NumPy's `descr`, the Python literal in which a .npy header and our own calls name a
// dtype.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/python_literal.h"
#include "lowtide/dtype.h"

namespace lowtide {

// "'<f4'", "<f4", "float32", "[('x', '<f4'), ('', '|V4'), ('y', '<i8', (2,))]", "('<f4', (3,))".
// Throws FormatError; object anywhere, also nested, is refused by name.
[[nodiscard]] DType parse_descr(std::string_view text);

// The same, of a literal that is already parsed: what numpy.lib.format.descr_to_dtype makes of it,
// with padding kept as fields without a name. Refused although NumPy reads them: several types in
// one text ('f4,i4'), which it never writes, and titles that are not text.
[[nodiscard]] DType dtype_from_descr(const Literal& descr);

// A tuple of integers from 0 to 2^63 - 1; bool is not an integer. Throws FormatError.
[[nodiscard]] std::vector<std::uint64_t> shape_from_literal(const Literal& shape);

}  // namespace lowtide

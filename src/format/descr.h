// descr.h - NumPy's `descr`, the Python literal that names a dtype in .npy headers and in options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/python_literal.h"
#include "lowtide/dtype.h"

namespace lowtide {

// "'<f4'", "<f4", "float32", "[('x', '<f4'), ('', '|V4'), ('y', '<i8', (2,))]", "('<f4', (3,))".
// Throws FormatError; an object dtype, also a nested one, is refused by name.
[[nodiscard]] DType parse_descr(std::string_view text);

// The same for a literal that is already parsed. The result is that of
// numpy.lib.format.descr_to_dtype, with padding kept as unnamed fields. Two things that NumPy reads
// are refused: several types in one text ('f4,i4'), which NumPy never writes, and titles that are
// not text.
[[nodiscard]] DType dtype_from_descr(const Literal& descr);

// Accepts a tuple of integers from 0 to 2^63 - 1; bool is not an integer. Throws FormatError.
[[nodiscard]] std::vector<std::uint64_t> shape_from_literal(const Literal& shape);

}  // namespace lowtide

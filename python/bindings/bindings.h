// bindings.h - shared by the files of the module lowtide._core. There is no logic here, only names,
// the GIL and lifetimes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <vector>

#include "gil.h"
#include "lowtide/array.h"
#include "lowtide/tokens.h"

namespace lowtide::python {

namespace nb = nanobind;

using OwnedArray = Owned<Array>;
using OwnedTokens = Owned<Tokens>;

// Memory to fill, borrowed from the caller for one call. Structured types arrive as plain bytes.
using ByteArray = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// The same for token offsets.
using OffsetArray = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// Row numbers, read only: int64, uint64, int32 or uint32.
using RowArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The same numbers as the core takes them, borrowed. Throws nb::type_error for any other type.
[[nodiscard]] RowList row_list(const RowArray& rows);

// Checks a size before the core writes into memory that Python owns. Throws std::invalid_argument
// if `out` does not have exactly count * bytes_each bytes.
void check_room(const ByteArray& out, std::uint64_t count, std::uint64_t bytes_each);

// Paths are passed as bytes, because a file name need not be text.
[[nodiscard]] std::vector<std::string> from_python(const std::vector<nb::bytes>& paths);
[[nodiscard]] std::vector<nb::bytes> to_python(const std::vector<std::string>& paths);

void bind_errors(nb::module_& module);
void bind_array(nb::module_& module);
void bind_batches(nb::module_& module);
void bind_tokens(nb::module_& module);
void bind_loader(nb::module_& module);
void bind_profile(nb::module_& module);
void bind_inspect(nb::module_& module);
void bind_ceiling(nb::module_& module);

[[nodiscard]] nb::dict stats_dict(const Stats& stats);

// Wraps a Batches over `array` in a Python object, which holds the `rows` that it borrows.
[[nodiscard]] nb::object make_batches(const Array& array, BatchOptions options,
                                      const nb::object& rows);

}  // namespace lowtide::python

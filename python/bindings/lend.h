// lend.h - lends batches of token windows to Python. Every array or tensor holds its batch; when
// the last one goes, the buffer returns to the pool.
#pragma once

#include <cstddef>
#include <string_view>

#include "bindings.h"

namespace lowtide::python {

// The DLPack type for one of token_types().
[[nodiscard]] nb::dlpack::dtype token_type(std::string_view word);

// Returns (x, y, batch): arrays of shape (rows, block_size), and the batch as a Python object.
[[nodiscard]] nb::object lend_arrays(Batch batch, nb::dlpack::dtype type);

// Returns what `make` makes of a DLPack capsule for column kX or kY, of shape (rows, block_size).
[[nodiscard]] nb::object lend_tensor(const Batch& batch, std::size_t column, nb::dlpack::dtype type,
                                     const nb::object& make);

// The numbers of the samples as a new int64 array.
[[nodiscard]] nb::object new_index(const Batch& batch);

}  // namespace lowtide::python

// lend.h - lends batches to Python. Every array or tensor holds its batch; when the last one goes,
// the buffer returns to the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bindings.h"

namespace lowtide::python {

// How a column is lent: its element type and the axes after the first, whose length follows from
// the size of the column. A type that DLPack does not know is lent as bytes, with one axis.
struct Lending {
  std::optional<nb::dlpack::dtype> type;
  std::vector<std::size_t> row_shape;
};

// The DLPack type of elements such as "int64" or "<f4"; nullopt if there is none.
[[nodiscard]] std::optional<nb::dlpack::dtype> dlpack_type(std::string_view descr);
// The DLPack type for one of token_types().
[[nodiscard]] nb::dlpack::dtype token_type(std::string_view word);

// Returns (x, y, batch): arrays of shape (rows, block_size), and the batch as a Python object.
[[nodiscard]] nb::object lend_windows(Batch batch, nb::dlpack::dtype type);

// Returns an array of one column; `lease` is its batch as a Python object.
[[nodiscard]] nb::object lend_array(const Batch& batch, std::size_t column, const Lending& how,
                                    const nb::object& lease);
// Returns what `make` makes of a DLPack capsule for a column.
[[nodiscard]] nb::object lend_tensor(const Batch& batch, std::size_t column, const Lending& how,
                                     const nb::object& make);

// The numbers of the samples as a new int64 array.
[[nodiscard]] nb::object new_index(const Batch& batch);

}  // namespace lowtide::python

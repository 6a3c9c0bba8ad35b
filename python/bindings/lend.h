// lend.h - batches of token windows as Python borrows them. Whatever is lent holds its batch, and
// with the last of it the buffer goes back.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "bindings.h"

namespace lowtide::python {

// A batch as a Python object, which tells what is known of it.
struct LentBatch {
  std::shared_ptr<const TokenBatch> batch;
};

// "uint16", "int64": what an array of such tokens is. Throws std::invalid_argument.
[[nodiscard]] nb::dlpack::dtype token_type(std::string_view word);

// (both, lease): an array of shape (2, rows, block_size), x and y, each contiguous, and the batch.
[[nodiscard]] nb::object lend_arrays(TokenBatch&& taken, nb::dlpack::dtype type);

// x or y, (rows, block_size), as what `make` makes of a DLPack capsule.
[[nodiscard]] nb::object lend_tensor(const std::shared_ptr<const TokenBatch>& batch,
                                     std::byte* tokens, nb::dlpack::dtype type,
                                     const nb::callable& make);

}  // namespace lowtide::python

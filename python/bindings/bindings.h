// bindings.h - shared by the files of the module lowtide._core. There is no logic here, only names,
// the GIL and lifetimes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gil.h"
#include "lowtide/array.h"
#include "lowtide/csr.h"
#include "lowtide/files.h"
#include "lowtide/tokens.h"

namespace lowtide::python {

namespace nb = nanobind;

using OwnedArray = Owned<Array>;
using OwnedTokens = Owned<Tokens>;
using OwnedCsr = Owned<Csr>;
using OwnedFile = Owned<FileReader>;
using OwnedOpener = Owned<FileOpener>;

// The bytes of an array to fill: C-contiguous, writable and of any dtype. Borrowed from the caller
// for one call; made and destroyed with the GIL held. Unlike an nb::ndarray, it costs little beside
// a read of one row.
class OutBytes {
 public:
  explicit OutBytes(nb::handle array) {
    if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_WRITABLE) != 0) throw nb::python_error();
  }
  OutBytes(const OutBytes&) = delete;
  OutBytes& operator=(const OutBytes&) = delete;
  ~OutBytes() { PyBuffer_Release(&view_); }

  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }
  // How many rows of this size fit; 0 for rows without bytes.
  [[nodiscard]] std::uint64_t rows(std::uint64_t row_bytes) const {
    return row_bytes == 0 ? 0 : bytes().size() / row_bytes;
  }

 private:
  Py_buffer view_{};
};
// Token offsets to fill, borrowed in the same way.
using OffsetArray = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// Row numbers, read only: int64, uint64, int32 or uint32.
using RowArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The same numbers as the core takes them, borrowed. Throws nb::type_error for any other type.
[[nodiscard]] RowList row_list(const RowArray& rows);

// Paths are passed as bytes, because a file name need not be text.
[[nodiscard]] inline std::string string_of(const nb::bytes& bytes) {
  return {bytes.c_str(), bytes.size()};
}
[[nodiscard]] inline nb::bytes bytes_of(const std::string& text) {
  return nb::bytes(text.data(), text.size());
}
[[nodiscard]] std::vector<std::string> from_python(const std::vector<nb::bytes>& paths);
[[nodiscard]] std::vector<nb::bytes> to_python(const std::vector<std::string>& paths);

// The options of reading that every opener takes.
[[nodiscard]] ReadOptions read_options(std::uint64_t memory_bytes, const std::string& engine,
                                       const std::string& cache,
                                       std::optional<std::uint64_t> gap_bytes, unsigned requests,
                                       const nb::bytes& cache_dir, std::uint64_t cache_bytes);

void bind_errors(nb::module_& module);
void bind_array(nb::module_& module);
void bind_csr(nb::module_& module);
void bind_files(nb::module_& module);
void bind_batch(nb::module_& module);
void bind_batches(nb::module_& module);
void bind_token_writer(nb::module_& module);
void bind_tokens(nb::module_& module);
void bind_loader(nb::module_& module);
void bind_profile(nb::module_& module);
void bind_jobs(nb::module_& module);
void bind_inspect(nb::module_& module);
void bind_ceiling(nb::module_& module);
void bind_writer(nb::module_& module);

[[nodiscard]] nb::dict stats_dict(const Stats& stats);

// Wraps a Batches over `array` in a Python object, which holds the `rows` that it borrows.
[[nodiscard]] nb::object make_batches(const Array& array, BatchOptions options,
                                      const nb::object& rows);

}  // namespace lowtide::python

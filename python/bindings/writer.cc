#include "lowtide/writer.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"

namespace lowtide::python {
namespace {

using nb::literals::operator""_a;
using OwnedWriter = Owned<ArrayWriter>;

// The bytes of rows to write: C-contiguous. Borrowed from the caller for one call; made and
// destroyed with the GIL held.
class InBytes {
 public:
  explicit InBytes(nb::handle array) {
    if (PyObject_GetBuffer(array.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  InBytes(const InBytes&) = delete;
  InBytes& operator=(const InBytes&) = delete;
  ~InBytes() { PyBuffer_Release(&view_); }

  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

OwnedWriter create(const nb::bytes& path, std::optional<std::string> dtype,
                   std::optional<std::uint64_t> rows,
                   std::optional<std::vector<std::uint64_t>> row_shape, bool fortran_order,
                   bool append, std::uint64_t memory_bytes) {
  const std::string name = string_of(path);
  const CreateOptions options{.dtype = std::move(dtype),
                              .rows = rows,
                              .row_shape = std::move(row_shape),
                              .fortran_order = fortran_order,
                              .append = append,
                              .memory_bytes = memory_bytes};
  const Unlocked unlocked;
  return ArrayWriter::create(name, options);
}

void write(OwnedWriter& writer, std::uint64_t first, std::uint64_t count, nb::handle rows) {
  const InBytes from(rows);
  const Unlocked unlocked;
  writer.write(first, count, from.bytes());
}

void write_rows(OwnedWriter& writer, const RowArray& index, nb::handle rows) {
  const RowList list = row_list(index);
  const InBytes from(rows);
  const Unlocked unlocked;
  writer.write_rows(list, from.bytes());
}

std::uint64_t append(OwnedWriter& writer, std::uint64_t count, nb::handle rows) {
  const InBytes from(rows);
  const Unlocked unlocked;
  return writer.append(count, from.bytes());
}

// A text with a path in it is bytes.
nb::bytes part(OwnedWriter& writer, std::uint64_t first, std::uint64_t end) {
  std::string text;
  {
    const Unlocked unlocked;
    text = writer.part(first, end);
  }
  return nb::bytes(text.data(), text.size());
}

OwnedWriter open_part(const nb::bytes& part, std::uint64_t memory_bytes) {
  const std::string text = string_of(part);
  const Unlocked unlocked;
  return ArrayWriter::open_part(text, memory_bytes);
}

nb::dict writer_stats(const OwnedWriter& writer) {
  const WriteStats now = writer.stats();
  nb::dict claims;
  for (const auto& [name, bytes] : now.memory_claims) claims[nb::str(name.c_str())] = bytes;
  nb::dict memory;
  memory["limit"] = now.memory_limit_bytes;
  memory["claims"] = claims;
  nb::dict all;
  all["bytes_given"] = now.bytes_given;
  all["bytes_written"] = now.bytes_written;
  all["writes"] = now.writes;
  all["wait_ns"] = now.wait_ns;
  all["memory"] = memory;
  return all;
}

}  // namespace

void bind_writer(nb::module_& module) {
  nb::class_<OwnedWriter>(module, "ArrayWriter")
      .def_static("create", &create, "path"_a, nb::kw_only(), "dtype"_a.none(), "rows"_a.none(),
                  "row_shape"_a.none(), "fortran_order"_a, "append"_a, "memory_bytes"_a)
      .def_prop_ro("descr", [](const OwnedWriter& writer) { return writer.dtype().descr(); })
      .def_prop_ro(
          "shape", [](const OwnedWriter& writer) { return nb::tuple(nb::cast(writer.shape())); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("rows", &ArrayWriter::rows)
      .def_prop_ro("next_row", &ArrayWriter::next_row)
      .def_prop_ro("row_bytes", &ArrayWriter::row_bytes)
      .def_prop_ro("has_row_shape", &ArrayWriter::has_row_shape)
      .def_prop_ro("closed", &ArrayWriter::closed)
      .def("set_row_shape", &ArrayWriter::set_row_shape, "row_shape"_a)
      .def("write", &write, "first"_a, "count"_a, "rows"_a,
           nb::sig("def write(self, first: int, count: int, rows: NDArray[typing.Any]) -> None"))
      .def("write_rows", &write_rows, "index"_a, "rows"_a,
           nb::sig("def write_rows(self, index: NDArray[typing.Any], rows: NDArray[typing.Any]) "
                   "-> None"))
      .def("append", &append, "count"_a, "rows"_a,
           nb::sig("def append(self, count: int, rows: NDArray[typing.Any]) -> int"))
      .def("part", &part, "first"_a, "end"_a)
      .def_static("open_part", &open_part, "part"_a, "memory_bytes"_a)
      .def("commit", &ArrayWriter::commit, nb::call_guard<Unlocked>())
      .def("close", &ArrayWriter::close, nb::call_guard<Unlocked>())
      .def("abandon", &ArrayWriter::abandon, nb::call_guard<Unlocked>())
      .def("stats", &writer_stats, nb::sig("def stats(self) -> dict[str, typing.Any]"));
}

}  // namespace lowtide::python

#include "lowtide/csr.h"

#include <nanobind/stl/string.h>

#include "bindings.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

OwnedCsr open_csr(const OwnedArray& data, const OwnedArray& indices, const OwnedArray& indptr,
                  std::uint64_t columns) {
  const Unlocked unlocked;
  return Csr::open(data, indices, indptr, columns);
}

void csr_offsets(const OwnedCsr& csr, const RowArray& rows, const OffsetArray& out) {
  const RowList list = row_list(rows);
  const std::span<std::int64_t> into(out.data(), out.size());
  const Unlocked unlocked;
  csr.offsets(list, into);
}

void csr_take(const OwnedCsr& csr, const RowArray& rows, nb::handle data, nb::handle indices) {
  const RowList list = row_list(rows);
  const OutBytes values(data), columns(indices);
  const Unlocked unlocked;
  csr.take(list, values.bytes(), columns.bytes());
}

nb::dict csr_stats(const OwnedCsr& csr) {
  Stats now;
  {
    const Unlocked unlocked;
    now = csr.stats();
  }
  return stats_dict(now);
}

}  // namespace

void bind_csr(nb::module_& module) {
  nb::class_<OwnedCsr>(module, "Csr")
      .def_static("open", &open_csr, "data"_a, "indices"_a, "indptr"_a, "columns"_a)
      .def_prop_ro("rows", &Csr::rows)
      .def_prop_ro("columns", &Csr::columns)
      .def_prop_ro("values", &Csr::values)
      .def_prop_ro("closed", &Csr::closed)
      .def("offsets", &csr_offsets, "rows"_a, "out"_a,
           nb::sig("def offsets(self, rows: NDArray[typing.Any], out: NDArray[typing.Any]) -> "
                   "None"))
      .def("take", &csr_take, "rows"_a, "data"_a, "indices"_a,
           nb::sig("def take(self, rows: NDArray[typing.Any], data: NDArray[typing.Any], "
                   "indices: NDArray[typing.Any]) -> None"))
      .def("stats", &csr_stats, nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def("close", &Csr::close, nb::call_guard<Unlocked>());
}

}  // namespace lowtide::python

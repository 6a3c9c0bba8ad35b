#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "bindings.h"
#include "consumer.h"
#include "lend.h"
#include "state.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

// A Batches and the row numbers it borrows.
struct PyBatches : Consumer<Batches> {
  PyBatches(Batches made, nb::object lent)
      : Consumer(std::move(made), "batches: this iterator"), rows(std::move(lent)) {}
  // The reader borrows the rows, so it must end before them.
  ~PyBatches() { close(); }

  nb::object rows;
};

nb::object as_tuple(Batch batch) {
  nb::object index = new_index(batch);
  const std::span<std::byte> rows = batch.column(0);
  const nb::object lease = nb::cast(std::move(batch), nb::rv_policy::move);
  return nb::make_tuple(std::move(index), nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(
                                              rows.data(), {rows.size()}, lease));
}

nb::object next(PyBatches& self) {
  Batch batch = self.wait([](Batches& batches) { return batches.next_for(kSignalCheck); });
  return batch ? as_tuple(std::move(batch)) : nb::none();
}

}  // namespace

nb::object make_batches(const Array& array, BatchOptions options, const nb::object& rows) {
  if (!rows.is_none()) options.rows = row_list(nb::cast<RowArray>(rows));
  std::optional<Batches> made;
  {
    const Unlocked unlocked;
    made.emplace(array.batches(options));
  }
  auto held = std::make_unique<PyBatches>(std::move(*made), rows);
  return nb::cast(held.release(), nb::rv_policy::take_ownership);
}

void bind_batches(nb::module_& module) {
  nb::class_<PyBatches> bound(module, "Batches", nb::is_weak_referenceable());
  bound
      .def("next", &next,
           nb::sig("def next(self) -> "
                   "tuple[NDArray[numpy.int64], NDArray[numpy.uint8]] | None"))
      .def("steps", asks<PyBatches>(&Batches::steps))
      .def("epoch", asks<PyBatches>(&Batches::epoch))
      .def("position", asks<PyBatches>(&Batches::position))
      .def(
          "seek",
          [](PyBatches& self, std::uint64_t step) {
            self.alone([step](Batches& batches) { batches.seek(step); });
          },
          "step"_a)
      .def("close", &PyBatches::close);
  bind_state<Batches>(bound);
}

}  // namespace lowtide::python

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "bindings.h"
#include "gil.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

// Ctrl-C ends a stalled wait within twice this.
constexpr std::chrono::milliseconds kSignalCheck{100};

// A Batches, the row numbers it borrows, and the lock that makes several threads one consumer.
// The lock is only ever waited for without the GIL.
struct PyBatches {
  PyBatches(Batches made, nb::object lent) : rows(std::move(lent)), batches(std::move(made)) {}
  PyBatches(const PyBatches&) = delete;
  PyBatches& operator=(const PyBatches&) = delete;
  ~PyBatches() { close(); }

  // In a child the lock may be held by a thread that does not exist there.
  void forked() { new (&consumer) std::timed_mutex; }

  void close() noexcept {
    if (closed.exchange(true)) return;
    const Unlocked unlocked;
    batches->cancel();
    const std::lock_guard lock(consumer);
    batches.reset();
  }

  nb::object rows;
  std::timed_mutex consumer;
  std::atomic<bool> closed = false;
  std::optional<Batches> batches;
};

// One turn of waiting: at most kSignalCheck. Called without the GIL.
std::optional<Batch> wait_a_little(PyBatches& self, bool* timed_out) {
  const std::unique_lock lock(self.consumer, kSignalCheck);
  *timed_out = !lock.owns_lock();
  if (*timed_out || !self.batches.has_value()) return std::nullopt;
  return self.batches->next_for(kSignalCheck, timed_out);
}

nb::object as_tuple(Batch&& batch, std::uint64_t row_bytes) {
  const auto samples = batch.samples();
  const std::size_t count = samples.size();
  auto numbers = std::make_unique_for_overwrite<std::int64_t[]>(count);
  std::copy(samples.begin(), samples.end(), numbers.get());
  std::int64_t* const index = numbers.get();
  const nb::capsule index_owner(numbers.release(),
                                [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
  auto lease = std::make_unique<Batch>(std::move(batch));
  std::byte* const data = lease->data();
  const nb::capsule lease_owner(lease.release(),
                                [](void* p) noexcept { delete static_cast<Batch*>(p); });
  return nb::make_tuple(
      nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>(index, {count}, index_owner),
      nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>(data, {count * row_bytes}, lease_owner));
}

nb::object next(PyBatches& self, std::uint64_t row_bytes) {
  for (;;) {
    std::optional<Batch> batch;
    bool timed_out = false;
    {
      const Unlocked unlocked;
      batch = wait_a_little(self, &timed_out);
    }
    if (batch.has_value()) return as_tuple(std::move(*batch), row_bytes);
    if (!timed_out || self.closed) return nb::none();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// Runs `ask` on the open Batches as its only user.
template <class Ask>
auto alone(PyBatches& self, Ask ask) {
  const Unlocked unlocked;
  const std::lock_guard lock(self.consumer);
  if (!self.batches.has_value()) throw std::invalid_argument("batches: this iterator is closed");
  return ask(*self.batches);
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
  nb::class_<PyBatches>(module, "Batches", nb::is_weak_referenceable())
      .def("next", &next, "row_bytes"_a,
           nb::sig("def next(self, row_bytes: int) -> "
                   "tuple[NDArray[numpy.int64], NDArray[numpy.uint8]] | None"))
      .def("steps",
           [](PyBatches& self) { return alone(self, [](Batches& b) { return b.steps(); }); })
      .def("position",
           [](PyBatches& self) { return alone(self, [](Batches& b) { return b.position(); }); })
      .def(
          "seek",
          [](PyBatches& self, std::uint64_t step) {
            alone(self, [step](Batches& b) { b.seek(step); });
          },
          "step"_a)
      .def("forked", &PyBatches::forked)
      .def("close", &PyBatches::close);
}

}  // namespace lowtide::python

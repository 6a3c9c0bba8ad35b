// Ceilings of maps that Python owns. Python passes arrays to say what it touches, because only
// NumPy can interpret an index and its strides.
#include "lowtide/ceiling.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <atomic>
#include <optional>
#include <string>

#include "bindings.h"

namespace lowtide::python {

using nb::literals::operator""_a;

namespace {

// Borrows the memory behind an object. While this lives, a map cannot be closed.
class Borrowed {
 public:
  Borrowed(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  ~Borrowed() { PyBuffer_Release(&view_); }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  [[nodiscard]] const Py_buffer& operator*() const { return view_; }
  [[nodiscard]] const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_{};
};

// The bytes that an array with strides spans, from its lowest one.
struct Span {
  const char* at;
  std::uint64_t size_bytes;
};

Span span_of(const Py_buffer& view) {
  const char* low = static_cast<const char*>(view.buf);
  auto size = static_cast<std::uint64_t>(view.itemsize);
  for (int axis = 0; axis < view.ndim; ++axis) {
    if (view.shape[axis] == 0) return {low, 0};
    const Py_ssize_t reach = view.strides[axis] * (view.shape[axis] - 1);
    size += static_cast<std::uint64_t>(reach < 0 ? -reach : reach);
    if (reach < 0) low += reach;
  }
  return {low, size};
}

// The address of the element that one integer per axis selects; nullptr for any other index.
const char* element_at(const Py_buffer& view, nb::handle index) {
  const bool several = PyTuple_Check(index.ptr());
  const Py_ssize_t count = several ? PyTuple_Size(index.ptr()) : 1;
  if (count != view.ndim) return nullptr;
  const char* at = static_cast<const char*>(view.buf);
  for (Py_ssize_t axis = 0; axis < count; ++axis) {
    PyObject* const entry = several ? PyTuple_GetItem(index.ptr(), axis) : index.ptr();
    if (!PyIndex_Check(entry)) return nullptr;
    Py_ssize_t place = PyNumber_AsSsize_t(entry, nullptr);
    if (place == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return nullptr;
    }
    if (place < 0) place += view.shape[axis];
    if (place < 0 || place >= view.shape[axis]) return nullptr;
    at += place * view.strides[axis];
  }
  return at;
}

// The ceiling of a map object, which owns it. Until close() the map counts as borrowed. So if
// someone calls mmap's own close or resize instead of the map object's, they raise BufferError and
// the address stays valid during a trim.
class MapCeiling {
 public:
  MapCeiling(nb::handle map, const CeilingOptions& options) {
    if (PyObject_GetBuffer(map.ptr(), &lent_, PyBUF_SIMPLE) != 0) throw nb::python_error();
    try {
      ceiling_.emplace(lent_.buf, static_cast<std::uint64_t>(lent_.len), options);
    } catch (...) {
      PyBuffer_Release(&lent_);
      throw;
    }
    // The map owns this object and outlives it. A counted reference would be a cycle.
    Py_DECREF(lent_.obj);
  }
  // If close() was not called, a dying map has cleared its slot. It does not need the buffer back.

  Ceiling* operator->() { return &*ceiling_; }
  const Ceiling* operator->() const { return &*ceiling_; }

  void close() {
    ceiling_->close();
    if (given_back_.exchange(true)) return;  // once, also where two threads close without the GIL
    Py_INCREF(lent_.obj);
    PyBuffer_Release(&lent_);
  }

 private:
  Py_buffer lent_{};
  std::atomic<bool> given_back_ = false;
  std::optional<Ceiling> ceiling_;
};

void make(MapCeiling* self, nb::handle map, std::uint64_t memory_bytes,
          std::uint64_t file_offset_bytes, const std::optional<nb::bytes>& drop_path) {
  CeilingOptions options{.memory_bytes = memory_bytes, .file_offset_bytes = file_offset_bytes};
  if (drop_path) options.drop_path = string_of(*drop_path);
  new (self) MapCeiling(map, options);
}

// Keeps the GIL, because this usually only checks a few bits.
void touch(MapCeiling& ceiling, nb::handle array) {
  const Borrowed view(array, PyBUF_STRIDED_RO);
  const Span span = span_of(*view);
  ceiling->touch(span.at, span.size_bytes);
}

void touch_element(MapCeiling& ceiling, nb::handle array, nb::handle index) {
  const Borrowed view(array, PyBUF_STRIDED_RO);
  if (const char* const at = element_at(*view, index)) {
    ceiling->touch(at, static_cast<std::uint64_t>(view->itemsize));
  } else {
    ceiling->touch_anywhere(1);
  }
}

nb::dict ceiling_stats(const MapCeiling& ceiling) {
  const CeilingStats now = ceiling->stats();
  nb::dict all;
  all["memory"] = now.memory_bytes;
  all["entered"] = now.entered_bytes ? nb::object(nb::int_(*now.entered_bytes)) : nb::none();
  all["trims"] = now.trims;
  all["refused"] = now.refused;
  return all;
}

std::uint64_t release(nb::handle map, bool dump, const nb::bytes& path) {
  const Borrowed memory(map, PyBUF_SIMPLE);
  return release_map(memory->buf, static_cast<std::uint64_t>(memory->len), !dump, string_of(path));
}

}  // namespace

void bind_ceiling(nb::module_& module) {
  nb::class_<MapCeiling>(module, "Ceiling")
      .def("__init__", &make, "map"_a, "memory_bytes"_a, "file_offset_bytes"_a,
           "drop_path"_a.none())
      .def("touch", &touch, "array"_a)
      .def("touch_element", &touch_element, "array"_a, "index"_a)
      .def(
          "touch_anywhere",
          [](MapCeiling& ceiling, std::uint64_t places) { ceiling->touch_anywhere(places); },
          "places"_a)
      .def(
          "lend", [](MapCeiling& ceiling, std::uint64_t bytes) { ceiling->lend(bytes); }, "bytes"_a)
      .def("trim", [](MapCeiling& ceiling) { return ceiling->trim(); })
      .def("close", &MapCeiling::close)
      .def_prop_ro("limited", [](const MapCeiling& ceiling) { return ceiling->limited(); })
      .def_prop_ro("limit_bytes", [](const MapCeiling& ceiling) { return ceiling->limit_bytes(); })
      .def("stats", &ceiling_stats, nb::sig("def stats(self) -> dict[str, typing.Any]"));
  module.def("release", &release, "map"_a, "dump"_a, "path"_a);
  module.def("stop_trimming", &stop_trimming);
  module.def("resume_trimming", &resume_trimming);
}

}  // namespace lowtide::python

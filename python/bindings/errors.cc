// The only place where a C++ error becomes a Python one. OSError picks its subclass from errno, so
// a missing file raises FileNotFoundError, as with open().
#include <nanobind/stl/string.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

#include "bindings.h"
#include "lowtide/command/terminal.h"
#include "lowtide/error.h"
#include "lowtide/interrupt.h"

namespace lowtide::python {
namespace {

// Never freed: a translator may run while the module is being torn down.
PyObject* format_error = nullptr;

// Messages contain file names, which need not be text and may contain terminal control codes.
nb::object text(std::string_view bytes) {
  const std::string visible = visible_text(bytes);
  return nb::steal(
      PyUnicode_FromStringAndSize(visible.data(), static_cast<Py_ssize_t>(visible.size())));
}

constexpr const char* kNoMemory =
    "out of memory: the machine is short of memory, or the process has reached its limit "
    "(ulimit -v) or that of its cgroup";

void set_os_error(const IoError& error) {
  nb::object path = nb::none();
  if (!error.path.empty()) {
    path = nb::steal(PyUnicode_DecodeFSDefaultAndSize(error.path.data(),
                                                      static_cast<Py_ssize_t>(error.path.size())));
  }
  // Made here and not when it is caught: Python 3.10 would look for `except OSError` alone.
  const nb::object made = nb::handle(PyExc_OSError)(error.err, text(error.reason), path);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.ptr())), made.ptr());
}

void translate(const std::exception_ptr& thrown, void* /*payload*/) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Interrupted&) {
    if (PyErr_Occurred() == nullptr) PyErr_SetNone(PyExc_KeyboardInterrupt);  // else as it is set
  } catch (const IoError& error) {
    set_os_error(error);
  } catch (const NoMemory& error) {
    PyErr_SetObject(PyExc_MemoryError, text(error.what()).ptr());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, kNoMemory);
  } catch (const std::length_error&) {  // a vector larger than the address space
    PyErr_SetString(PyExc_MemoryError, kNoMemory);
  } catch (const FormatError& error) {
    PyErr_SetObject(format_error, text(error.what()).ptr());
  } catch (const std::invalid_argument& error) {
    PyErr_SetObject(PyExc_ValueError, text(error.what()).ptr());
  } catch (const std::out_of_range& error) {
    PyErr_SetObject(PyExc_IndexError, text(error.what()).ptr());
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  const auto name = nb::cast<std::string>(module.attr("__name__")) + ".FormatError";
  format_error = PyErr_NewExceptionWithDoc(
      name.c_str(),
      "The bytes of a file contradict its header or the arguments.\n\n"
      "The message names the path, the offset if known, what was expected and what was found.",
      PyExc_ValueError, nullptr);
  if (format_error == nullptr) throw nb::python_error();
  module.attr("FormatError") = nb::borrow(format_error);
  nb::register_exception_translator(translate);
}

}  // namespace lowtide::python

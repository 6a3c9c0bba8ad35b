// lowtide._core: the C++ interface for Python. The package lowtide makes it behave like NumPy.
#include <nanobind/stl/string.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "bindings.h"
#include "gil.h"
#include "lowtide/address.h"
#include "lowtide/bytes.h"
#include "lowtide/command/build.h"
#include "lowtide/version.h"

namespace lowtide::python {
namespace {

std::atomic<bool> ending = false;
std::atomic<int> coming_back = 0;  // threads between their check of `ending` and the GIL
std::thread::id ending_thread;     // written before `ending` is set

constexpr std::chrono::milliseconds kPoll{1};
constexpr int kPolls = 1000;
constexpr std::chrono::hours kForGood{24};

}  // namespace

Unlocked::Unlocked() : state_(PyEval_SaveThread()), heard_(std::chrono::steady_clock::now()) {}

Unlocked::~Unlocked() {
  if (state_ != nullptr) take_back();
}

void Unlocked::hear_signals() {
  const auto now = std::chrono::steady_clock::now();
  if (now - heard_ < kSignalCheck) return;
  heard_ = now;
  take_back();
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  state_ = PyEval_SaveThread();
}

bool Unlocked::stop() noexcept {
  if (state_ == nullptr) return true;  // it was said already
  const auto now = std::chrono::steady_clock::now();
  if (now - heard_ < kSignalCheck) return false;
  heard_ = now;
  take_back();
  if (PyErr_CheckSignals() != 0) return true;
  state_ = PyEval_SaveThread();
  return false;
}

void Unlocked::take_back() {
  ++coming_back;
  if (ending && std::this_thread::get_id() != ending_thread) {
    --coming_back;
    for (;;) std::this_thread::sleep_for(kForGood);
  }
  PyEval_RestoreThread(std::exchange(state_, nullptr));
  --coming_back;
}

bool Locked::possible() noexcept {
  return !ending || std::this_thread::get_id() == ending_thread;
}

Locked::Locked() {
  ++coming_back;
  if (!possible()) {
    --coming_back;
    throw std::runtime_error("the Python interpreter is shutting down");
  }
  state_ = PyGILState_Ensure();
  --coming_back;
}

Locked::~Locked() {
  PyGILState_Release(state_);
}

void keep_threads_out() {
  if (!ending) ending_thread = std::this_thread::get_id();
  ending = true;
  PyThreadState* const state = PyEval_SaveThread();
  for (int poll = 0; coming_back != 0 && poll < kPolls; ++poll) std::this_thread::sleep_for(kPoll);
  PyEval_RestoreThread(state);
}

void forget_threads() {
  coming_back = 0;
}

}  // namespace lowtide::python

NB_MODULE(_core, module) {
  namespace nb = nanobind;
  using nb::literals::operator""_a;
  // A program that still holds a batch when the interpreter ends has done nothing wrong.
  nb::set_leak_warnings(false);
  lowtide::python::bind_errors(module);
  lowtide::python::bind_batch(module);
  lowtide::python::bind_batches(module);
  lowtide::python::bind_files(module);
  lowtide::python::bind_array(module);
  lowtide::python::bind_csr(module);
  lowtide::python::bind_tokens(module);
  lowtide::python::bind_token_writer(module);
  lowtide::python::bind_loader(module);
  lowtide::python::bind_profile(module);
  lowtide::python::bind_inspect(module);
  lowtide::python::bind_jobs(module);
  lowtide::python::bind_ceiling(module);
  lowtide::python::bind_writer(module);
  module.def("version", &lowtide::version);
  module.def(
      "parse_bytes",
      [](const std::string& text, std::uint64_t least_bytes) {
        return lowtide::parse_bytes(text, least_bytes);
      },
      "text"_a, "least_bytes"_a = 1);
  module.def("format_bytes", &lowtide::format_bytes, "bytes"_a);
  module.def("keep_threads_out", &lowtide::python::keep_threads_out);
  module.def("forget_threads", &lowtide::python::forget_threads);
  module.def("why_no_uring", &lowtide::why_no_uring);
  module.def("why_no_http", &lowtide::why_no_http);
  module.def(
      "is_address",
      [](const nb::bytes& text) { return lowtide::is_address(lowtide::python::string_of(text)); },
      "text"_a);
  module.def(
      "shown_address",
      [](const nb::bytes& text) {
        const std::string shown = lowtide::shown_address(lowtide::python::string_of(text));
        return nb::bytes(shown.data(), shown.size());
      },
      "text"_a);
  module.def(
      "has_secret",
      [](const nb::bytes& text) { return lowtide::has_secret(lowtide::python::string_of(text)); },
      "text"_a);
  module.def("default_memory_bytes", &lowtide::default_memory_bytes);
}

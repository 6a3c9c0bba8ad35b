// consumer.h - a Batches or a Loader for Python: several threads count as one consumer, Ctrl-C
// interrupts every wait, and nothing waits with the GIL held.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "bindings.h"
#include "gil.h"
#include "os/per_process.h"

namespace lowtide::python {

template <class Reader>
class Consumer {
 public:
  // `what` names the object in messages: "this loader".
  Consumer(Reader made, const char* what) : what_(what), reader_(std::move(made)) {}
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;
  ~Consumer() { close(); }

  [[nodiscard]] bool closed() const { return closed_; }

  void close() noexcept {
    if (closed_.exchange(true)) return;
    const Unlocked unlocked;
    reader_->cancel();
    const std::lock_guard lock(lock_.get());
    reader_.reset();
  }

  // Returns the batch that `take` takes from the reader; an empty one after close(). `take` returns
  // nullopt if it gave up after kSignalCheck.
  template <class Take>
  Batch wait(Take take) {
    for (;;) {
      {
        const Unlocked unlocked;
        const std::unique_lock lock(lock_.get(), kSignalCheck);
        if (lock.owns_lock()) {
          if (!reader_.has_value()) return Batch();
          if (std::optional<Batch> batch = take(*reader_)) return std::move(*batch);
        }
      }
      if (closed_) return Batch();
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  // Runs `ask` on the open reader, which nobody else uses meanwhile.
  template <class Ask>
  auto alone(Ask ask) {
    for (;;) {
      {
        const Unlocked unlocked;
        const std::unique_lock lock(lock_.get(), kSignalCheck);
        if (lock.owns_lock()) {
          if (!reader_.has_value()) throw std::invalid_argument(std::string(what_) + " is closed");
          return ask(*reader_);
        }
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

 private:
  const char* what_;
  PerProcess<std::timed_mutex> lock_;  // never waited for with the GIL held
  std::atomic<bool> closed_ = false;
  std::optional<Reader> reader_;
};

// A function for nanobind that asks the reader of a Held, which is a Consumer, one question.
template <class Held, class Reader, class Value>
auto asks(Value (Reader::*question)() const) {
  return [question](Held& self) {
    return self.alone([question](Reader& reader) { return (reader.*question)(); });
  };
}

}  // namespace lowtide::python

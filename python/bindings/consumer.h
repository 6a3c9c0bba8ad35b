// consumer.h - a Batches or a Loader for Python: several threads count as one consumer, Ctrl-C
// interrupts every wait, and nothing waits with the GIL held.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bindings.h"
#include "gil.h"

namespace lowtide::python {

template <class Reader>
class Consumer {
 public:
  // `what` names the object in messages: "this loader".
  Consumer(Reader made, const char* what) : what_(what), reader_(std::move(made)) {}
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;
  ~Consumer() { close(); }

  // In a forked child, a thread that does not exist there may hold the lock.
  void forked() { new (&lock_) std::timed_mutex; }
  [[nodiscard]] bool closed() const { return closed_; }

  void close() noexcept {
    if (closed_.exchange(true)) return;
    const Unlocked unlocked;
    reader_->cancel();
    const std::lock_guard lock(lock_);
    reader_.reset();
  }

  // Returns what `take` returns, a std::optional: nullopt at the end and after close(). `take` gets
  // the reader and a flag, which it sets if it gave up after kSignalCheck.
  template <class Take>
  auto wait(Take take) -> decltype(take(std::declval<Reader&>(), nullptr)) {
    for (;;) {
      bool timed_out = false;
      {
        const Unlocked unlocked;
        const std::unique_lock lock(lock_, kSignalCheck);
        timed_out = !lock.owns_lock();
        if (!timed_out && reader_.has_value()) {
          auto taken = take(*reader_, &timed_out);
          if (taken.has_value()) return taken;
        }
      }
      if (!timed_out || closed_) return std::nullopt;
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  // Runs `ask` on the open reader, which nobody else uses meanwhile.
  template <class Ask>
  auto alone(Ask ask) {
    for (;;) {
      {
        const Unlocked unlocked;
        const std::unique_lock lock(lock_, kSignalCheck);
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
  std::timed_mutex lock_;  // never waited for with the GIL held
  std::atomic<bool> closed_ = false;
  std::optional<Reader> reader_;
};

}  // namespace lowtide::python

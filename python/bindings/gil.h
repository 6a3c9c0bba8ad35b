// gil.h - releases the GIL in a way that survives the interpreter's shutdown.
//
// If a daemon thread takes the GIL after shutdown has begun, the interpreter unwinds the thread by
// force, and C++ frames above it call std::terminate. So threads that return from the core during
// shutdown sleep forever instead, as Python 3.14 does itself.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <utility>

#include "lowtide/interrupt.h"

namespace lowtide::python {

// Releases the GIL for as long as it lives. The thread must hold the GIL.
class Unlocked final : private WaitHook {
 public:
  Unlocked();
  ~Unlocked() override;
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  // Takes the GIL briefly so that Ctrl-C takes effect. Throws what a signal handler raised, and
  // then keeps the GIL. Cheap: does nothing until kSignalCheck has passed since the last time.
  void hear_signals();

 private:
  // Asked while the core waits for a read. True: a signal handler raised something, which is set
  // as the Python error of this thread; the GIL is held.
  [[nodiscard]] bool stop() noexcept override;
  void take_back();
  PyThreadState* state_;  // nullptr: the GIL is held again
  std::chrono::steady_clock::time_point heard_;
};

// Takes the GIL on any thread for as long as it lives, also on one that has released it. Throws
// std::runtime_error once the interpreter ends: no thread of ours may return to it then.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  [[nodiscard]] static bool possible() noexcept;

 private:
  PyGILState_STATE state_;
};

// Ctrl-C interrupts a stalled wait within twice this time.
inline constexpr std::chrono::milliseconds kSignalCheck{100};

// A Base that a Python object owns. Destroying the last one may wait for threads that are in the
// middle of a read, so it releases the GIL.
template <class Base>
class Owned : public Base {
 public:
  Owned(Base&& made) : Base(std::move(made)) {}
  Owned(const Owned&) = default;
  Owned(Owned&&) = default;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    const Unlocked unlocked;
    const Base gone(std::move(static_cast<Base&>(*this)));
  }
};

// Called once before shutdown, by the thread that ends the interpreter. From then on, only that
// thread returns from an Unlocked. Waits until no other thread is about to return.
void keep_threads_out();

// Called in the child of a fork, where the threads that were about to return no longer exist.
void forget_threads();

}  // namespace lowtide::python

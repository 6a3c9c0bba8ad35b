// gil.h - letting go of the interpreter's lock, in a way that survives the interpreter's end.
//
// A daemon thread that asks for the lock after the interpreter began to end is unwound by force,
// which no C++ frame above it survives (std::terminate). So threads that come back from the core
// then stay away for good, as Python 3.14 has it.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <utility>

namespace lowtide::python {

// Lets other Python threads run for as long as it lives. The thread must hold the lock.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  // Takes the lock for a moment so that Ctrl-C is heard. Throws what a signal handler raised, with
  // the lock held again for good. Cheap: looks every kSignalCheck only.
  void hear_signals();

 private:
  void take_back();
  PyThreadState* state_;  // nullptr: the lock is held again
  std::chrono::steady_clock::time_point heard_;
};

// Ctrl-C ends a stalled wait within twice this.
inline constexpr std::chrono::milliseconds kSignalCheck{100};

// A Base as a Python object owns it. The last one to go may wait for threads that are in the middle
// of a read: nobody else waits with it.
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

// Called once, by the thread that ends the interpreter and before it does: from then on only that
// thread comes back from an Unlocked. Waits until no other is on its way.
void keep_threads_out();

// Called in the child of a fork, where the threads that were on their way are no more.
void forget_threads();

}  // namespace lowtide::python

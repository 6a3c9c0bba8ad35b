// gil.h - letting go of the interpreter's lock, in a way that survives the interpreter's end.
//
// A daemon thread that asks for the lock after the interpreter began to end is unwound by force,
// which no C++ frame above it survives (std::terminate). So threads that come back from the core
// then stay away for good, as Python 3.14 has it.
#pragma once

#include <nanobind/nanobind.h>

namespace lowtide::python {

// Lets other Python threads run for as long as it lives. The thread must hold the lock.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Called once, by the thread that ends the interpreter and before it does: from then on only that
// thread comes back from an Unlocked. Waits until no other is on its way.
void keep_threads_out();

// Called in the child of a fork, where the threads that were on their way are no more.
void forget_threads();

}  // namespace lowtide::python

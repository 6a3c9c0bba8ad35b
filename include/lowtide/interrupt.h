// interrupt.h - lets a program stop waiting for a read, for example when the user presses Ctrl-C
// while a server is silent.
#pragma once

#include <exception>

namespace lowtide {

// Thrown by a call that was stopped while it waited.
class Interrupted : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "interrupted"; }
};

// While a WaitHook exists, every wait for reads on its thread calls stop() about 20 times per
// second. If stop() returns true, the reads are cancelled and the waiting call throws Interrupted.
// Batches and loaders offer waits with a timeout instead: next_for().
class WaitHook {
 public:
  WaitHook() : outer_(current_) { current_ = this; }
  virtual ~WaitHook() { current_ = outer_; }
  WaitHook(const WaitHook&) = delete;
  WaitHook& operator=(const WaitHook&) = delete;

  [[nodiscard]] virtual bool stop() noexcept = 0;
  // The hook of the calling thread; nullptr: none.
  [[nodiscard]] static WaitHook* current() noexcept { return current_; }

 private:
  WaitHook* const outer_;
  static inline thread_local WaitHook* current_ = nullptr;
};

}  // namespace lowtide

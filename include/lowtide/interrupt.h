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

// While it exists, every wait of the calling thread for reads asks stop() about 20 times per
// second. If that returns true, the reads are cancelled and the call throws Interrupted. Batches
// and loaders have waits with a limit instead: next_for().
class WaitHook {
 public:
  WaitHook() : outer_(current_) { current_ = this; }
  virtual ~WaitHook() { current_ = outer_; }
  WaitHook(const WaitHook&) = delete;
  WaitHook& operator=(const WaitHook&) = delete;

  [[nodiscard]] virtual bool stop() noexcept = 0;
  // Of the calling thread; nullptr: nobody wants to stop.
  [[nodiscard]] static WaitHook* current() noexcept { return current_; }

 private:
  WaitHook* const outer_;
  static inline thread_local WaitHook* current_ = nullptr;
};

}  // namespace lowtide

// lock.h - the shim's only lock: held while the table changes, and during a whole trim.
//
// Made fork-safe by hand: in a child, the lock may be held by a thread that exists only in the
// parent, so the child calls reset(). Signals are blocked while it is held, so a signal handler
// that maps files cannot wait for the thread that it interrupted.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/bare.h"

namespace lowtide::ceiling {

class Lock {
 public:
  // Calls `stuck` after every 100 ms of waiting; if it returns true, the lock is reset and retaken.
  void take(bool (*stuck)()) {
    std::uint32_t seen = 0;
    if (word_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
    while (word_.exchange(2, std::memory_order_acquire) != 0) {
      bare::wait_word(word_, 2, 100'000'000);
      if (stuck()) reset();
    }
  }
  void give() {
    if (word_.exchange(0, std::memory_order_release) == 2) bare::wake_word(word_);
  }
  void reset() { word_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t> word_{0};
};

}  // namespace lowtide::ceiling

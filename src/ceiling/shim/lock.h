// lock.h - the one lock of the shim: held while the table changes, and for the whole of a trim.
//
// Fork-safe by hand: the child's thread may find it taken by a thread that it has not, and calls
// reset(). Signals are blocked while it is held, so a handler that maps files cannot wait for the
// thread it interrupted.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/bare.h"

namespace lowtide::ceiling {

class Lock {
 public:
  // `stuck` is called every 100 ms of waiting; when it returns true the lock is taken anew.
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

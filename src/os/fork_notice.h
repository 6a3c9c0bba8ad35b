// fork_notice.h - notices, once per process, that it is the child of a fork.
#pragma once

#include <atomic>
#include <thread>

#include "os/limits.h"

namespace lowtide {

// A member of objects that belong to one process. Any thread.
class ForkNotice {
 public:
  // Call it in any process before using anything else. In a child, the first thread calls `leave`
  // and the others wait for it. `leave` abandons the parent's state, whose locks may be held and
  // whose lists half changed by threads that do not exist here. It must not throw.
  template <typename Leave>
  void look(const Leave& leave) {
    const int now = process_id();
    int known = pid_.load(std::memory_order_acquire);
    if (known == now) return;
    if (known == kLeaving || !pid_.compare_exchange_strong(known, kLeaving)) {
      while (pid_.load(std::memory_order_acquire) != now) std::this_thread::yield();
      return;
    }
    leave();
    pid_.store(now, std::memory_order_release);
  }

 private:
  static constexpr int kLeaving = -1;  // no process has this id

  std::atomic<int> pid_{process_id()};
};

}  // namespace lowtide

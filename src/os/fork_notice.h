// fork_notice.h - notices, once in each process, that it is the child of a fork.
#pragma once

#include <atomic>
#include <thread>

#include "os/limits.h"

namespace lowtide {

// Stands beside what belongs to one process. Any thread.
class ForkNotice {
 public:
  // In a child, before anything else there is used: the first thread that comes calls `leave`,
  // which takes leave of what was the parent's (its locks may be held and its lists half changed by
  // threads that do not exist here), and the others wait for it. `leave` must not throw.
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

// waiter.h - a set of reads that its owner can wait for.
#pragma once

#include "core/mutex.h"
#include "engine/engine.h"

namespace lowtide {

class Waiter final : public ReadSet {
 public:
  void done(const Outcome& outcome) noexcept override {
    const MutexLock lock(mutex_);
    outcome_ = outcome;
    finished_ = true;
    changed_.notify_one();
  }
  // Call it once per submission.
  [[nodiscard]] Outcome wait() {
    const MutexLock lock(mutex_);
    while (!finished_) changed_.wait(mutex_);
    finished_ = false;
    return outcome_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool finished_ LOWTIDE_GUARDED_BY(mutex_) = false;
  Outcome outcome_ LOWTIDE_GUARDED_BY(mutex_);
};

}  // namespace lowtide

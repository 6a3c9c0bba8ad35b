// waiter.h - a set of reads that its owner can wait for.
#pragma once

#include <condition_variable>
#include <mutex>

#include "engine/engine.h"

namespace lowtide {

class Waiter final : public ReadSet {
 public:
  void done(const Outcome& outcome) noexcept override {
    const std::lock_guard lock(mutex_);
    outcome_ = outcome;
    finished_ = true;
    changed_.notify_one();
  }
  // Call it once per submission.
  [[nodiscard]] Outcome wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_; });
    finished_ = false;
    return outcome_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false;
  Outcome outcome_;
};

}  // namespace lowtide

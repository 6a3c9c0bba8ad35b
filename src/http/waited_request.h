// waited_request.h - a request that the calling thread waits for, and stops waiting for if it has a
// WaitHook.
#pragma once

#include <atomic>
#include <chrono>

#include "core/mutex.h"
#include "http/transport.h"
#include "lowtide/interrupt.h"

namespace lowtide {

// One thread calls run(), once; the others are the transport's.
class WaitedRequest : public HttpRequest {
 public:
  // Throws Interrupted if the hook of this thread says so.
  [[nodiscard]] HttpResult run(Transport& transport) {
    transport.submit(*this);
    MutexLock lock(mutex_);
    WaitHook* const hook = WaitHook::current();
    while (!finished_) {
      if (hook == nullptr) {
        changed_.wait(mutex_);
      } else if (!changed_.wait_until(mutex_, CondVar::Clock::now() + kAskEvery)) {
        lock.unlock();
        if (hook->stop()) stopped_.store(true, std::memory_order_relaxed);
        lock.lock();
      }
    }
    if (result_.fault == HttpFault::cancelled) throw Interrupted();
    return result_;
  }
  void done(const HttpResult& result) noexcept final {
    const MutexLock lock(mutex_);
    result_ = result;
    finished_ = true;
    changed_.notify_one();
  }
  [[nodiscard]] bool cancelled() const noexcept final {
    return stopped_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::chrono::milliseconds kAskEvery{50};
  std::atomic<bool> stopped_{false};
  Mutex mutex_;
  CondVar changed_;
  bool finished_ LOWTIDE_GUARDED_BY(mutex_) = false;
  HttpResult result_ LOWTIDE_GUARDED_BY(mutex_);
};

}  // namespace lowtide

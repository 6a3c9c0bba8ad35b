// waited_request.h - a request that the calling thread waits for, and stops waiting for if it has a
// WaitHook.
#pragma once

#include <atomic>
#include <chrono>

#include "core/mutex.h"
#include "http/transport.h"
#include "lowtide/interrupt.h"

namespace lowtide {

// One thread starts it, once, and waits for it; the others are the transport's. Several may be
// started before the first is waited for.
class WaitedRequest : public HttpRequest {
 public:
  [[nodiscard]] HttpResult run(Transport& transport) {
    start(transport);
    return wait();
  }
  void start(Transport& transport) {
    started_ = true;
    transport.submit(*this);
  }
  // Throws Interrupted if the hook of this thread asks to stop.
  [[nodiscard]] HttpResult wait() {
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

 protected:
  // Ends a request that nobody waits for any more. For the destructor of a class whose requests may
  // be left alone: its own members are what the transport still writes to.
  void abandon() noexcept {
    if (!started_) return;
    stopped_.store(true, std::memory_order_relaxed);
    const MutexLock lock(mutex_);
    while (!finished_) changed_.wait(mutex_);
  }

 private:
  static constexpr std::chrono::milliseconds kAskEvery{50};
  std::atomic<bool> stopped_{false};
  bool started_ = false;
  Mutex mutex_;
  CondVar changed_;
  bool finished_ LOWTIDE_GUARDED_BY(mutex_) = false;
  HttpResult result_ LOWTIDE_GUARDED_BY(mutex_);
};

}  // namespace lowtide

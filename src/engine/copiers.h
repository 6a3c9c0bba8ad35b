// copiers.h - threads that serve sets of reads from the data that the memory engine holds.
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "engine/engine.h"
#include "engine/held_data.h"
#include "os/quiet_thread.h"

namespace lowtide {

// One thread copies a whole set. Any thread may submit one.
class Copiers {
 public:
  // One memory channel feeds about two threads that copy.
  static constexpr std::size_t kThreads = 2;

  explicit Copiers(const HeldData& data) : data_(data) {}

  ~Copiers() {
    std::vector<std::thread> threads;
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
      threads.swap(threads_);
    }
    work_.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  void submit(ReadSet& set) noexcept {
    try {
      const MutexLock lock(mutex_);
      threads_.reserve(kThreads);  // push_back must not throw once a thread is running
      while (threads_.size() < kThreads) {
        threads_.push_back(start_thread("a thread that copies", [this] { run(); }));
      }
      queue_.push_back(&set);
    } catch (const std::exception&) {  // no thread or no memory: copies on this thread
      serve(set);
      return;
    }
    work_.notify_one();
  }

 private:
  void run() {
    while (ReadSet* const set = next()) serve(*set);
  }

  // Waits for a set; nullptr when it is time to end.
  [[nodiscard]] ReadSet* next() LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (!stopping_ && queue_.empty()) work_.wait(mutex_);
    if (queue_.empty()) return nullptr;
    ReadSet* const set = queue_.front();
    queue_.pop_front();
    return set;
  }

  void serve(ReadSet& set) const noexcept {
    Outcome outcome;
    outcome.cancelled = set.cancelled();
    if (!outcome.cancelled) data_.copy(set.reads);
    set.done(outcome);
  }

  const HeldData& data_;
  Mutex mutex_;
  CondVar work_;
  std::deque<ReadSet*> queue_ LOWTIDE_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ LOWTIDE_GUARDED_BY(mutex_);
  bool stopping_ LOWTIDE_GUARDED_BY(mutex_) = false;
};

}  // namespace lowtide

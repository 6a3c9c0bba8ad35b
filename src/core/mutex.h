// mutex.h - a mutex, its lock and a condition variable whose use the clang build checks.
//
// A member that a Mutex guards is annotated: `int count_ LOWTIDE_GUARDED_BY(mutex_)`. A function
// that needs the lock is annotated with LOWTIDE_REQUIRES(mutex_), and one that takes it with
// LOWTIDE_EXCLUDES(mutex_). Clang then reports every use without the lock (-Wthread-safety). For
// other compilers the annotations mean nothing. No function takes a lock as an argument.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define LOWTIDE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LOWTIDE_THREAD_ANNOTATION(x)
#endif

#define LOWTIDE_GUARDED_BY(x) LOWTIDE_THREAD_ANNOTATION(guarded_by(x))
#define LOWTIDE_REQUIRES(...) LOWTIDE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define LOWTIDE_EXCLUDES(...) LOWTIDE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
// For a function that leaves a lock held for another one to release: clang cannot follow it.
#define LOWTIDE_UNCHECKED LOWTIDE_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace lowtide {

class LOWTIDE_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() LOWTIDE_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() LOWTIDE_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() LOWTIDE_THREAD_ANNOTATION(try_acquire_capability(true)) {
    return mutex_.try_lock();
  }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds the mutex until the end of its scope. In between it may be released and taken again, for
// work that must not hold it.
class LOWTIDE_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) LOWTIDE_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() LOWTIDE_THREAD_ANNOTATION(release_capability()) {
    if (held_) mutex_.unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() LOWTIDE_THREAD_ANNOTATION(release_capability()) {
    held_ = false;
    mutex_.unlock();
  }
  void lock() LOWTIDE_THREAD_ANNOTATION(acquire_capability()) {
    mutex_.lock();
    held_ = true;
  }

 private:
  Mutex& mutex_;
  bool held_ = true;
};

// Waits release the mutex and hold it again when they return. They may return without a reason, so
// the caller waits in a loop over its condition.
class CondVar {
 public:
  using Clock = std::chrono::steady_clock;

  void wait(Mutex& mutex) LOWTIDE_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock);
    (void)lock.release();
  }
  // False: the deadline has passed.
  [[nodiscard]] bool wait_until(Mutex& mutex, Clock::time_point deadline) LOWTIDE_REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool in_time = changed_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    (void)lock.release();
    return in_time;
  }

  void notify_one() noexcept { changed_.notify_one(); }
  void notify_all() noexcept { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace lowtide

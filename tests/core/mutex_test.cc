#include "core/mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace lowtide::mutex_test {
namespace {

using std::chrono::milliseconds;

class Counter {
 public:
  void add() LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void wait_for(int count) LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (count_ < count) changed_.wait(mutex_);
  }
  [[nodiscard]] bool wait_for(int count, milliseconds most) LOWTIDE_EXCLUDES(mutex_) {
    const CondVar::Clock::time_point deadline = CondVar::Clock::now() + most;
    const MutexLock lock(mutex_);
    while (count_ < count) {
      if (!changed_.wait_until(mutex_, deadline)) return count_ >= count;
    }
    return true;
  }
  // Takes the lock again after it was free for a moment.
  void add_twice() LOWTIDE_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    ++count_;
    lock.unlock();
    add();
    lock.lock();
    --count_;
    ++count_;
  }
  [[nodiscard]] int count() LOWTIDE_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return count_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ LOWTIDE_GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, LetsOneThreadInAtATime) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) counter.add_twice();
    });
  }
  counter.wait_for(8000);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.count(), 8000);
}

// The checker understands only an `if`.
bool is_free(Mutex& mutex) {
  if (!mutex.try_lock()) return false;
  mutex.unlock();
  return true;
}

TEST(Mutex, IsFreeAfterAScopeThatReleasedIt) {
  Mutex mutex;
  {
    MutexLock lock(mutex);
    lock.unlock();
    EXPECT_TRUE(is_free(mutex));
  }
  EXPECT_TRUE(is_free(mutex));
}

TEST(CondVar, GivesUpAtTheDeadline) {
  Counter counter;
  EXPECT_FALSE(counter.wait_for(1, milliseconds(5)));
  counter.add();
  EXPECT_TRUE(counter.wait_for(1, milliseconds(0)));
}

}  // namespace
}  // namespace lowtide::mutex_test

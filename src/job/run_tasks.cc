#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>

#include "core/mutex.h"
#include "job/plan.h"
#include "os/paths.h"
#include "os/quiet_thread.h"

namespace lowtide {
namespace {

constexpr auto kTickEvery = std::chrono::milliseconds(50);

// Another process may be at the same task: then this one waits, and takes over if that one dies.
void run_once(const Plan::Impl& plan, std::size_t stage, std::size_t task,
              std::uint64_t memory_bytes, JobWatch& watch) {
  while (!plan.done(stage, task)) {
    try {
      plan.run(stage, task, memory_bytes, watch);
      break;
    } catch (const IoError& error) {
      if (plan.published()) break;  // somebody else has finished the job meanwhile
      if (error.err != EBUSY) throw;
      if (plan.stages.size() > 1 && !path_exists(plan.folder.path())) {
        throw IoError(ENOENT, "write", plan.folder.path(), std::nullopt,
                      "the folder of this job was removed while a task wrote into it");
      }
    }
    watch.advance(0);
    std::this_thread::sleep_for(kTickEvery);
  }
  plan.finish();
}

class TaskThreads {
 public:
  TaskThreads(const Plan::Impl& plan, std::size_t stage, const std::vector<std::size_t>& tasks,
              std::uint64_t memory_bytes)
      : plan_(plan), stage_(stage), tasks_(tasks), memory_bytes_(memory_bytes) {}
  ~TaskThreads() {
    watch_.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  void start(std::size_t threads) {
    threads_.reserve(threads);  // a thread that runs must not be lost for want of room
    for (std::size_t i = 0; i < threads; ++i) {
      {
        const MutexLock lock(mutex_);
        ++running_;
      }
      try {
        threads_.push_back(start_quiet_thread("a thread for a task", [this] { work(); }));
      } catch (...) {
        const MutexLock lock(mutex_);
        --running_;
        throw;
      }
    }
  }

  // Throws the first error of a task, or what `tick` throws.
  void wait(const std::function<void(std::uint64_t, std::size_t)>& tick) {
    for (bool running = true; running;) {
      std::size_t done = 0;
      {
        const MutexLock lock(mutex_);
        const auto deadline = CondVar::Clock::now() + kTickEvery;
        while (running_ > 0 && changed_.wait_until(mutex_, deadline)) {
        }
        running = running_ > 0;
        done = done_;
      }
      if (running) tick(watch_.done_bytes(), done);
    }
    const MutexLock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void work() noexcept {
    for (;;) {
      std::size_t task = 0;
      {
        const MutexLock lock(mutex_);
        if (next_ == tasks_.size() || error_) break;
        task = tasks_[next_++];
      }
      std::exception_ptr error;
      try {
        run_once(plan_, stage_, task, memory_bytes_, watch_);
      } catch (...) {
        error = std::current_exception();
      }
      const MutexLock lock(mutex_);
      ++done_;
      if (!error) continue;
      if (!error_) error_ = error;
      watch_.stop();
    }
    const MutexLock lock(mutex_);
    --running_;
    changed_.notify_all();
  }

  const Plan::Impl& plan_;
  const std::size_t stage_;
  const std::vector<std::size_t>& tasks_;
  const std::uint64_t memory_bytes_;
  JobWatch watch_;
  Mutex mutex_;
  CondVar changed_;
  std::size_t next_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::size_t done_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::size_t running_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::exception_ptr error_ LOWTIDE_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace

void run_tasks(const Plan::Impl& plan, std::size_t stage, const std::vector<std::size_t>& tasks,
               std::size_t threads, std::uint64_t memory_bytes,
               const std::function<void(std::uint64_t, std::size_t)>& tick) {
  if (tasks.empty()) return plan.finish();
  TaskThreads running(plan, stage, tasks, memory_bytes);
  running.start(threads);
  running.wait(tick);
}

}  // namespace lowtide

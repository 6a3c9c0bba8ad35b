#include "writer/write_thread.h"

#include <utility>

#include "lowtide/error.h"
#include "os/quiet_thread.h"

namespace lowtide {

WriteThread::~WriteThread() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

bool WriteThread::try_start(std::function<void()> work) {
  const MutexLock lock(mutex_);
  if (busy_ || refused_) return false;
  if (!thread_.joinable()) {
    try {
      thread_ = start_quiet_thread("a thread that writes", [this] { run(); });
    } catch (const IoError&) {
      refused_ = true;
      return false;
    }
  }
  work_ = std::move(work);
  busy_ = true;
  changed_.notify_all();
  return true;
}

void WriteThread::run() noexcept {
  MutexLock lock(mutex_);
  for (;;) {
    while (!work_ && !ending_) changed_.wait(mutex_);
    if (!work_) return;
    const std::function<void()> work = std::exchange(work_, nullptr);
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    busy_ = false;
    changed_.notify_all();
  }
}

void WriteThread::wait() {
  const MutexLock lock(mutex_);
  while (busy_) changed_.wait(mutex_);
  if (error_) std::rethrow_exception(error_);
}

}  // namespace lowtide

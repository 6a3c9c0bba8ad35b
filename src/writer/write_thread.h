// write_thread.h - one thread that writes a full buffer while the next one is filled.
//
// Whoever makes the bytes then waits for the disk only if it is slower.
#pragma once

#include <exception>
#include <functional>
#include <thread>

#include "core/mutex.h"

namespace lowtide {

// Any thread. Belongs to one process, see PerProcess.
class WriteThread {
 public:
  WriteThread() = default;
  // Waits for the work that runs.
  ~WriteThread();
  WriteThread(const WriteThread&) = delete;
  WriteThread& operator=(const WriteThread&) = delete;

  // Runs `work` on the thread, which begins with the first call, and returns at once. False if it
  // is busy or cannot be started: the caller does the work itself.
  [[nodiscard]] bool try_start(std::function<void()> work);
  // Until it is idle. Throws the first error of what it ran, again and again.
  void wait();

 private:
  void run() noexcept;

  Mutex mutex_;
  CondVar changed_;
  std::function<void()> work_ LOWTIDE_GUARDED_BY(mutex_);  // until the thread takes it
  bool busy_ LOWTIDE_GUARDED_BY(mutex_) = false;           // until it is done
  bool ending_ LOWTIDE_GUARDED_BY(mutex_) = false;
  bool refused_ LOWTIDE_GUARDED_BY(mutex_) = false;  // there can be no thread
  std::exception_ptr error_ LOWTIDE_GUARDED_BY(mutex_);
  std::thread thread_ LOWTIDE_GUARDED_BY(mutex_);
};

}  // namespace lowtide

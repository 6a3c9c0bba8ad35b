#include "os/process_id.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace lowtide {
namespace {

// Cached: a system call would cost as much as a small read, and only a fork changes the answer.
std::atomic<int> known_process{0};
void note_process() {
  known_process.store(::getpid(), std::memory_order_relaxed);
}

}  // namespace

int process_id() {
  static const bool noticed = ::pthread_atfork(nullptr, nullptr, note_process) == 0;
  const int known = noticed ? known_process.load(std::memory_order_relaxed) : 0;
  if (known != 0) return known;
  note_process();
  return known_process.load(std::memory_order_relaxed);
}

}  // namespace lowtide

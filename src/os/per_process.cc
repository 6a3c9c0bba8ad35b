#include "os/per_process.h"

#include <pthread.h>

#include <new>

namespace lowtide {
namespace {

std::atomic<std::uint64_t> generation{0};
std::atomic<bool> counting{false};

void count_fork() {
  generation.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// Registers without a lock, because a lock could be held at a fork. If two threads register, or a
// child does so again, a fork counts more than once, which does no harm.
std::uint64_t process_generation() {
  if (!counting.load(std::memory_order_acquire)) {
    at_fork(nullptr, nullptr, count_fork);
    counting.store(true, std::memory_order_release);
  }
  return generation.load(std::memory_order_relaxed);
}

void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  if (::pthread_atfork(before, in_parent, in_child) != 0) throw std::bad_alloc();
}

}  // namespace lowtide

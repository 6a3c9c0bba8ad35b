// forked.h - a child of a process that has threads, as DataLoader and multiprocessing make them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" __attribute__((weak)) void __asan_init();
extern "C" __attribute__((weak)) void __tsan_init();

namespace lowtide {

// Whether a sanitizer watches this program.
inline bool sanitized() {
  return __asan_init != nullptr || __tsan_init != nullptr;
}

// g++ 12: the allocator of AddressSanitizer keeps, in the child, the locks that other threads held
// at the fork, and ThreadSanitizer starts no threads there. glibc's allocator does neither.
inline bool children_work() {
  return !sanitized();
}

// Starts `body`, which returns the child's exit code, in a child that a hang ends by SIGALRM.
template <class Body>
pid_t start_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(120);
    ::_exit(body());
  }
  EXPECT_GT(child, 0);
  return child;
}

inline void expect_success(pid_t child) {
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace lowtide

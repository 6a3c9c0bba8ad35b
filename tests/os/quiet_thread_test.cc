#include "os/quiet_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "lowtide/error.h"
#include "os/as_nobody.h"
#include "support/forked.h"

namespace lowtide::quiet_thread_test {
namespace {

bool is_blocked(int signal) {
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return ::sigismember(&now, signal) == 1;
}

TEST(QuietThread, BlocksSignalsInItselfAndNotInItsMaker) {
  bool blocked = false;
  std::thread thread = start_quiet_thread("a thread", [&] {
    blocked = is_blocked(SIGINT) && is_blocked(SIGTERM) && is_blocked(SIGUSR1);
  });
  EXPECT_FALSE(is_blocked(SIGINT));
  thread.join();
  EXPECT_TRUE(blocked);
  EXPECT_FALSE(is_blocked(SIGINT));
}

// Root starts as many as it likes: an ordinary user meets the limit.
TEST(StartThread, SaysWhyNoThreadCanBeHad) {
  if (!children_work()) GTEST_SKIP() << "a sanitizer starts threads of its own in the child";
  const std::string said = as_nobody([]() -> std::string {
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) return "no limit can be set";
    try {
      start_thread("a reader thread", [] {}).join();
    } catch (const IoError& error) {
      return std::to_string(error.err) + " " + error.what();
    }
    return "a thread was started";
  });
  EXPECT_EQ(said, std::to_string(EAGAIN) +
                      " cannot start a reader thread: Resource temporarily unavailable; the limit "
                      "on processes and threads (ulimit -u, pids.max of the cgroup) is reached");
}

}  // namespace
}  // namespace lowtide::quiet_thread_test

#include "os/quiet_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <csignal>

#include "support/forked.h"

namespace lowtide {
namespace {

bool is_blocked(int signal) {
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return ::sigismember(&now, signal) == 1;
}

TEST(QuietThread, BlocksSignalsInItselfAndNotInItsMaker) {
  bool blocked = false;
  std::thread thread = start_quiet_thread(
      [&] { blocked = is_blocked(SIGINT) && is_blocked(SIGTERM) && is_blocked(SIGUSR1); });
  EXPECT_FALSE(is_blocked(SIGINT));
  thread.join();
  EXPECT_TRUE(blocked);
  EXPECT_FALSE(is_blocked(SIGINT));
}

int before = 0, in_parent = 0, in_child = 0;

TEST(AtFork, CallsBeforeAndThenOneOnEitherSide) {
  at_fork([] { ++before; }, [] { ++in_parent; }, [] { ++in_child; });
  const pid_t child =
      start_child([] { return before == 1 && in_parent == 0 && in_child == 1 ? 0 : 1; });
  expect_success(child);
  EXPECT_EQ(before, 1);
  EXPECT_EQ(in_parent, 1);
  EXPECT_EQ(in_child, 0);
}

}  // namespace
}  // namespace lowtide

#include "os/per_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/forked.h"

namespace lowtide::per_process_test {
namespace {

struct Counted {
  explicit Counted(std::atomic<int>& number) : alive(number) { ++alive; }
  ~Counted() { --alive; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  std::atomic<int>& alive;
  std::mutex mutex;
  int value = 0;
};

PerProcess<Counted>::Make counted(std::atomic<int>& alive) {
  return [&alive] { return std::make_unique<Counted>(alive); };
}

// What the threads found; each calls get() as soon as all of them run.
std::set<Counted*> found_by_threads(const PerProcess<Counted>& one, int count) {
  std::vector<Counted*> found(static_cast<std::size_t>(count));
  std::atomic<int> waiting = count;
  std::vector<std::thread> threads;
  for (Counted*& mine : found) {
    threads.emplace_back([&] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      mine = &one.get();
      const std::lock_guard lock(mine->mutex);
      ++mine->value;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {found.begin(), found.end()};
}

TEST(PerProcess, MakesOneWhenFirstAskedAndDestroysIt) {
  std::atomic<int> alive = 0;
  {
    const PerProcess<Counted> one(counted(alive));
    EXPECT_EQ(one.find(), nullptr);
    EXPECT_EQ(alive, 0);
    Counted& made = one.get();
    EXPECT_EQ(&one.get(), &made);
    EXPECT_EQ(one.find(), &made);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(PerProcess, TriesAgainAfterAFailure) {
  int calls = 0;
  const PerProcess<int> one([&calls] {
    if (++calls == 1) throw std::runtime_error("not yet");
    return std::make_unique<int>(7);
  });
  EXPECT_THROW((void)one.get(), std::runtime_error);
  EXPECT_EQ(one.find(), nullptr);
  EXPECT_EQ(one.get(), 7);
}

TEST(PerProcess, ThreadsGetTheSameOne) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> alive = 0;
    const PerProcess<Counted> one(counted(alive));
    const std::set<Counted*> found = found_by_threads(one, 8);
    EXPECT_EQ(found.size(), 1U);
    EXPECT_EQ(alive, 1);
    EXPECT_EQ(one.get().value, 8);
  }
}

// A thread of the parent holds the mutex at the fork: in the child nobody would release it.
TEST(PerProcess, AChildMakesItsOwnWithAFreeMutex) {
  std::atomic<int> alive = 0;
  const PerProcess<Counted> one(counted(alive));
  Counted& parents = one.get();
  std::atomic<bool> held = false, done = false;
  std::thread holder([&] {
    const std::lock_guard lock(parents.mutex);
    held = true;
    while (!done) std::this_thread::yield();
  });
  while (!held) std::this_thread::yield();
  const pid_t child = start_child([&] {
    if (one.find() != nullptr) return 1;
    if (&one.get() == &parents || alive != 2) return 2;
    const std::lock_guard lock(one.get().mutex);
    one.get().value = 1;
    return one.find() == &one.get() ? 0 : 3;
  });
  expect_success(child);
  done = true;
  holder.join();
  EXPECT_EQ(&one.get(), &parents);
  EXPECT_EQ(parents.value, 0);
  EXPECT_EQ(alive, 1);
}

TEST(PerProcess, AChildDestroysOnlyWhatItMade) {
  std::atomic<int> alive = 0;
  auto unused = std::make_unique<PerProcess<Counted>>(counted(alive));
  auto used = std::make_unique<PerProcess<Counted>>(counted(alive));
  (void)unused->get();
  (void)used->get();
  const pid_t child = start_child([&] {
    unused.reset();
    if (alive != 2) return 1;
    (void)used->get();
    if (alive != 3) return 2;
    used.reset();
    return alive == 2 ? 0 : 3;
  });
  expect_success(child);
  unused.reset();
  used.reset();
  EXPECT_EQ(alive, 0);
}

TEST(PerProcess, AGrandchildMakesItsOwn) {
  std::atomic<int> alive = 0;
  const PerProcess<Counted> one(counted(alive));
  (void)one.get();
  const std::uint64_t here = process_generation();
  const pid_t child = start_child([&] {
    if (process_generation() == here) return 1;
    const pid_t grandchild = start_child([&] {
      if (one.find() != nullptr) return 1;
      (void)one.get();
      return alive == 2 ? 0 : 2;
    });
    int status = -1;
    return ::waitpid(grandchild, &status, 0) == grandchild && status == 0 ? 0 : 2;
  });
  expect_success(child);
  EXPECT_EQ(process_generation(), here);
}

TEST(PerProcess, ThreadsOfAChildGetTheSameOne) {
  if (!children_work()) GTEST_SKIP() << "a sanitizer starts no threads in the child";
  std::atomic<int> alive = 0;
  const PerProcess<Counted> one(counted(alive));
  Counted* const parents = &one.get();
  const pid_t child = start_child([&] {
    const std::set<Counted*> found = found_by_threads(one, 8);
    return found.size() == 1 && !found.contains(parents) && alive == 2 ? 0 : 1;
  });
  expect_success(child);
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
}  // namespace lowtide::per_process_test

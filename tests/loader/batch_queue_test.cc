#include "loader/batch_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "loader/pool.h"

namespace lowtide::batch_queue_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

struct Source {
  Batch batch(std::uint64_t step) {
    Batch made = pool->take();
    Buffer::of(made).step = step;
    return made;
  }
  std::shared_ptr<Pool> pool = std::make_shared<Pool>(64, 1, 4);
};

TEST(BatchQueue, PassesBatchesOnInOrderAndThenEnds) {
  Source source;
  BatchQueue queue(3);
  EXPECT_FALSE(queue.over());
  queue.push(source.batch(0));
  std::vector<Batch> rest;
  rest.push_back(source.batch(1));
  rest.push_back(source.batch(2));
  queue.push_all(&rest);
  EXPECT_EQ(queue.news().ready, 3U);
  for (std::uint64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(queue.next(minutes(1)).value().step(), step);
  }
  EXPECT_TRUE(queue.over());
  EXPECT_FALSE(queue.next(minutes(1)).value());
}

TEST(BatchQueue, TellsAnErrorAfterTheBatchesBeforeItAndThenAsksToStartOver) {
  Source source;
  BatchQueue queue(5);
  queue.push(source.batch(0));
  queue.fail(std::make_exception_ptr(std::runtime_error("broken")));
  EXPECT_EQ(queue.next(minutes(1)).value().step(), 0U);
  EXPECT_THROW((void)queue.next(minutes(1)), std::runtime_error);
  EXPECT_FALSE(queue.news().start_over);
  EXPECT_FALSE(queue.next(milliseconds(1))) << "timed out";
  EXPECT_TRUE(queue.news().start_over);
  const BatchQueue::Restart restart = queue.start_over();
  EXPECT_EQ(restart.taken, 1U);
  EXPECT_FALSE(restart.most_bytes);
  queue.gave_back();
  queue.push(source.batch(1));
  EXPECT_EQ(queue.next(minutes(1)).value().step(), 1U);
}

TEST(BatchQueue, StaysOverOnceCancelled) {
  Source source;
  BatchQueue queue(5);
  std::thread other([&] { queue.cancel(); });
  EXPECT_FALSE(queue.next(minutes(1)).value());
  other.join();
  queue.push(source.batch(0));
  EXPECT_FALSE(queue.next(minutes(1)).value());
  EXPECT_TRUE(queue.news().stopping);
}

TEST(BatchQueue, WakesThePlannerOnceFewEnoughAreLeft) {
  Source source;
  BatchQueue queue(10);
  for (std::uint64_t step = 0; step < 5; ++step) queue.push(source.batch(step));
  (void)queue.news();
  std::atomic<bool> woken{false};
  std::thread planner([&] {
    EXPECT_EQ(queue.wait(3).ready, 2U);
    woken = true;
  });
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(queue.next(minutes(1)).value());
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_FALSE(woken);
  EXPECT_TRUE(queue.next(minutes(1)).value());
  planner.join();
}

TEST(BatchQueue, TellsThePlannerThatTheConsumerWaits) {
  Source source;
  BatchQueue queue(1);
  std::thread consumer([&] { EXPECT_TRUE(queue.next(minutes(1)).value()); });
  while (!queue.wait(0).waiting) {
  }
  queue.push(source.batch(0));
  consumer.join();
}

TEST(BatchQueue, MakesAClaimWaitUntilThePlannerHasGivenBack) {
  BatchQueue queue(1);
  queue.ask_back(7);  // there is no planner yet, so there is nothing to wait for
  queue.begin();
  std::atomic<bool> answered{false};
  std::thread claim([&] {
    queue.ask_back(1000);
    answered = true;
  });
  while (!queue.wait(0).start_over) {
  }
  const BatchQueue::Restart restart = queue.start_over();
  EXPECT_EQ(restart.most_bytes, 1000U);
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(answered);
  queue.gave_back();
  claim.join();
  std::thread late([&] { queue.ask_back(0); });
  queue.end();
  late.join();
}

}  // namespace
}  // namespace lowtide::batch_queue_test

#include "loader/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "support/forked.h"

namespace lowtide::pool_test {
namespace {

constexpr std::size_t kBytes = 8192;

std::byte* memory(const Batch& batch) {
  return Buffer::of(batch).memory.data();
}

TEST(Pool, GivesABufferBackToTheNextTaker) {
  const auto pool = std::make_shared<Pool>(kBytes, 10, 1);
  std::byte* first = nullptr;
  {
    const Batch batch = pool->take();
    EXPECT_EQ(Buffer::of(batch).memory.size(), kBytes);
    EXPECT_GE(Buffer::of(batch).samples.capacity(), 10U);
    Buffer::of(batch).samples = {1, 2};
    Buffer::of(batch).step = 7;
    first = memory(batch);
  }
  const Batch again = pool->take();
  EXPECT_EQ(memory(again), first);
  EXPECT_TRUE(again.index().empty());
  EXPECT_EQ(again.step(), 0U);
}

TEST(Pool, NeverGivesABufferThatSomebodyHas) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 2);
  std::vector<Batch> kept;
  for (int i = 0; i < 20; ++i) {
    kept.push_back(pool->take());
    std::memset(memory(kept.back()), i, kBytes);
    { const Batch other = pool->take(); }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(memory(kept[i])[0], static_cast<std::byte>(i));
    EXPECT_EQ(memory(kept[i])[kBytes - 1], static_cast<std::byte>(i));
  }
}

TEST(Pool, CountsDeliveredBuffersBeyondTheOneInHand) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 3);
  std::vector<Batch> kept;
  EXPECT_EQ(pool->held_bytes(), 0U);
  kept.push_back(pool->take());
  EXPECT_EQ(pool->held_bytes(), 0U) << "not delivered yet";
  pool->deliver(kept.back());
  EXPECT_EQ(pool->held_bytes(), 0U) << "the one in hand";
  for (int i = 0; i < 5; ++i) {
    kept.push_back(pool->take());
    pool->deliver(kept.back());
  }
  EXPECT_EQ(pool->held_bytes(), 5 * kBytes);
  kept.clear();
  EXPECT_EQ(pool->held_bytes(), 0U);
}

TEST(Pool, CountsABatchOnceHoweverOftenItIsCopiedAndMoved) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 4);
  Batch a = pool->take(), b = pool->take(), c = pool->take();
  for (const Batch& batch : {a, b, c}) pool->deliver(batch);
  Buffer::of(a).step = 7;
  EXPECT_EQ(pool->held_bytes(), 2 * kBytes);
  b = std::move(a);  // b's own buffer goes back
  EXPECT_EQ(pool->held_bytes(), kBytes);
  EXPECT_EQ(b.step(), 7U);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): a moved batch is empty
  Batch copy = b;
  const Batch moved(std::move(b));
  EXPECT_EQ(memory(copy), memory(moved));
  EXPECT_EQ(pool->held_bytes(), kBytes);
  copy = Batch();
  EXPECT_EQ(pool->held_bytes(), kBytes) << "one copy is left";
  EXPECT_EQ(moved.step(), 7U);
}

TEST(Pool, IsOutlivedByItsBatches) {
  Batch batch;
  {
    const auto pool = std::make_shared<Pool>(kBytes, 1, 1);
    batch = pool->take();
    pool->deliver(batch);
  }
  std::memset(memory(batch), 9, kBytes);
  EXPECT_EQ(memory(batch)[kBytes - 1], std::byte{9});
}

TEST(Pool, ServesManyThreads) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 3);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Batch> mine;
      std::mt19937 random(t);
      for (int i = 0; i < 500; ++i) {
        mine.push_back(pool->take());
        if (random() % 2 == 0) pool->deliver(mine.back());
        memory(mine.back())[0] = static_cast<std::byte>(t);
        if (random() % 4 == 0) mine.push_back(mine.front());
        for (const Batch& batch : mine) ASSERT_EQ(memory(batch)[0], static_cast<std::byte>(t));
        if (random() % 3 == 0) mine.erase(mine.begin());
        if (mine.size() > 8) mine.clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->held_bytes(), 0U);
}

TEST(Pool, TakesCopiesBackFromAnyThread) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 2);
  for (int round = 0; round < 200; ++round) {
    Batch batch = pool->take();
    pool->deliver(batch);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back([copy = batch] { EXPECT_TRUE(copy); });
    batch = Batch();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(pool->held_bytes(), 0U);
}

TEST(Pool, LetsAForkedChildReleaseBatchesWhileTheLockIsHeld) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 2);
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop) (void)pool->held_bytes();  // holds the lock at many of the forks
  });
  Batch batch = pool->take();
  for (int i = 0; i < 50; ++i) {
    expect_success(start_child([&] {
      batch = Batch();
      return 0;
    }));
  }
  stop = true;
  busy.join();
}

struct BatchColumns : testing::Test {
  BatchColumns() {
    Buffer& buffer = Buffer::of(batch);
    buffer.rows = 4;
    buffer.columns = {{.size_bytes = 32, .kind = 'f', .item_bytes = 4},
                      {.offset_bytes = 64, .size_bytes = 4, .kind = 'u', .item_bytes = 1},
                      {.offset_bytes = 130, .size_bytes = 8, .kind = 'V', .item_bytes = 2}};
  }
  Batch batch = std::make_shared<Pool>(kBytes, 1, 1)->take();
};

TEST_F(BatchColumns, AreBytesOrElementsOfTheirType) {
  struct Row {
    float a, b;
  };
  EXPECT_EQ(batch.rows(), 4U);
  EXPECT_EQ(batch.columns(), 3U);
  EXPECT_EQ(batch.column(1).data(), memory(batch) + 64);
  EXPECT_EQ(batch.column(1).size(), 4U);
  EXPECT_EQ(batch.as<float>().size(), 8U);
  EXPECT_EQ(batch.as<const float>().size(), 8U);
  EXPECT_EQ(batch.as<Row>().size(), 4U) << "a row at a time";
  EXPECT_EQ(batch.as<std::uint8_t>(1).size(), 4U);
  EXPECT_EQ(batch.as<std::byte>().size(), 32U);
}

TEST_F(BatchColumns, RefuseWhatTheyAreNot) {
  struct Odd {
    char three[3];
  };
  struct Aligned {
    std::uint16_t value;
  };
  EXPECT_THROW((void)batch.column(3), std::out_of_range);
  EXPECT_THROW((void)batch.as<float>(3), std::out_of_range);
  EXPECT_THROW((void)batch.as<std::int32_t>(), std::invalid_argument);
  EXPECT_THROW((void)batch.as<double>(), std::invalid_argument);
  EXPECT_THROW((void)batch.as<std::int8_t>(1), std::invalid_argument);
  EXPECT_THROW((void)batch.as<std::uint16_t>(2), std::invalid_argument);
  EXPECT_THROW((void)batch.as<Odd>(1), std::invalid_argument);
  EXPECT_EQ(batch.as<Aligned>(2).size(), 4U);
  EXPECT_THROW((void)Batch().column(0), std::out_of_range);
}

TEST(Batch, IsEmptyUnlessItHoldsABuffer) {
  const Batch empty;
  EXPECT_FALSE(empty);
  EXPECT_EQ(empty.rows(), 0U);
  EXPECT_EQ(empty.columns(), 0U);
  EXPECT_TRUE(empty.index().empty());
  EXPECT_TRUE(empty.offsets().empty());
}

TEST(SpareBuffers, AreForTheNextRunOfTheSameKind) {
  Budget budget(1 << 20);
  SpareBuffers spare(budget);
  const std::byte* used = nullptr;
  {
    const std::shared_ptr<Pool> pool = spare.take(4096, 10);
    used = Buffer::of(pool->take()).memory.data();
    spare.give(pool);
  }
  ASSERT_EQ(budget.claims().size(), 1U);
  EXPECT_EQ(budget.claims()[0].what, "spare buffers");
  EXPECT_EQ(budget.claims()[0].bytes, 4096U);
  const std::shared_ptr<Pool> again = spare.take(4096, 10);
  EXPECT_TRUE(budget.claims().empty());
  EXPECT_EQ(Buffer::of(again->take()).memory.data(), used);
  spare.give(again);
  (void)spare.take(8192, 10);
  EXPECT_TRUE(budget.claims().empty()) << "buffers of another size are of no use";
}

TEST(SpareBuffers, GiveWayToAClaim) {
  Budget budget(1 << 20);
  SpareBuffers spare(budget);
  std::shared_ptr<Pool> pool = spare.take(4096, 10);
  (void)pool->take();
  spare.give(std::move(pool));
  const Claim all = budget.claim(1 << 20, "all there is");
  EXPECT_EQ(budget.claims().size(), 1U);
  EXPECT_EQ(budget.free_bytes(), 0U);
}

TEST(SpareBuffers, DoNotGrowByABatchThatComesBackLater) {
  Budget budget(1 << 20);
  SpareBuffers spare(budget);
  const std::shared_ptr<Pool> pool = spare.take(4096, 10);
  pool->keep(2);
  Batch kept = pool->take();
  (void)pool->take();
  spare.give(pool);
  kept = {};
  EXPECT_EQ(pool->keep_free(), 4096U);
}

}  // namespace
}  // namespace lowtide::pool_test

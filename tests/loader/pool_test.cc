#include "loader/pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace lowtide::pool_test {
namespace {

constexpr std::size_t kBytes = 8192;

TEST(Pool, GivesABufferBackToTheNextTaker) {
  const auto pool = std::make_shared<Pool>(kBytes, 10, 1);
  std::byte* first = nullptr;
  {
    const Lease lease = pool->take();
    EXPECT_EQ(lease->memory.size(), kBytes);
    EXPECT_GE(lease->samples.capacity(), 10U);
    first = lease->memory.data();
  }
  EXPECT_EQ(pool->take()->memory.data(), first);
}

TEST(Pool, NeverGivesABufferThatSomebodyHas) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 2);
  std::vector<Lease> kept;
  for (int i = 0; i < 20; ++i) {
    kept.push_back(pool->take());
    std::memset(kept.back()->memory.data(), i, kBytes);
    { const Lease other = pool->take(); }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i]->memory.data()[0], static_cast<std::byte>(i));
    EXPECT_EQ(kept[i]->memory.data()[kBytes - 1], static_cast<std::byte>(i));
  }
}

TEST(Pool, CountsDeliveredBuffersBeyondTheOneInHand) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 3);
  std::vector<Lease> kept;
  EXPECT_EQ(pool->held_bytes(), 0U);
  kept.push_back(pool->take());
  EXPECT_EQ(pool->held_bytes(), 0U) << "not delivered yet";
  kept.back().deliver();
  EXPECT_EQ(pool->held_bytes(), 0U) << "the one in hand";
  for (int i = 0; i < 5; ++i) {
    kept.push_back(pool->take());
    kept.back().deliver();
  }
  EXPECT_EQ(pool->held_bytes(), 5 * kBytes);
  kept.clear();
  EXPECT_EQ(pool->held_bytes(), 0U);
}

TEST(Pool, MovesCountOnce) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 4);
  Lease a = pool->take(), b = pool->take(), c = pool->take();
  a.deliver();
  b.deliver();
  c.deliver();
  a.step = 7;
  a.epoch = 3;
  EXPECT_EQ(pool->held_bytes(), 2 * kBytes);
  b = std::move(a);  // b's own buffer goes back
  EXPECT_EQ(pool->held_bytes(), kBytes);
  EXPECT_EQ(b.step, 7U);
  EXPECT_EQ(b.epoch, 3U);
  const Lease moved(std::move(b));
  EXPECT_EQ(moved.step, 7U);
  EXPECT_EQ(pool->held_bytes(), kBytes);
  EXPECT_NE(moved->memory.data(), nullptr);
}

TEST(Pool, IsOutlivedByItsLeases) {
  std::optional<Lease> lease;
  {
    const auto pool = std::make_shared<Pool>(kBytes, 1, 1);
    lease = pool->take();
    lease->deliver();
  }
  std::memset((*lease)->memory.data(), 9, kBytes);
  EXPECT_EQ((*lease)->memory.data()[kBytes - 1], std::byte{9});
  lease.reset();
}

TEST(Pool, ServesManyThreads) {
  const auto pool = std::make_shared<Pool>(kBytes, 1, 3);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Lease> mine;
      std::mt19937 random(t);
      for (int i = 0; i < 500; ++i) {
        mine.push_back(pool->take());
        if (random() % 2 == 0) mine.back().deliver();
        mine.back()->memory.data()[0] = static_cast<std::byte>(t);
        for (const Lease& lease : mine) {
          ASSERT_EQ(lease->memory.data()[0], static_cast<std::byte>(t));
        }
        if (random() % 3 == 0) mine.erase(mine.begin());
        if (mine.size() > 8) mine.clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->held_bytes(), 0U);
}

}  // namespace
}  // namespace lowtide::pool_test

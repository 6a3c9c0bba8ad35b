#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "loader/pool.h"
#include "support/fake_accelerator.h"
#include "support/forked.h"
#include "support/lookahead_rig.h"

namespace lowtide::pool_device_test {
namespace {

constexpr std::size_t kBytes = 8192;

std::byte* memory(const Batch& batch) {
  return Buffer::of(batch).memory.data();
}

// Delivers a batch, starts a copy of it, and releases it at once. Returns where it was.
const std::byte* copy_one(Pool& pool, FakeAccelerator& device, unsigned char value = 1) {
  const Batch batch = pool.take();
  std::memset(memory(batch), value, kBytes);
  pool.deliver(batch);
  device.copy(Buffer::of(batch).memory.bytes());
  return memory(batch);
}

void expect_clean(FakeAccelerator& device) {
  const FakeAccelerator::Counts counts = device.counts();
  EXPECT_EQ(counts.torn, 0U);
  EXPECT_EQ(counts.unpinned_early, 0U);
  EXPECT_EQ(counts.pinned_wrongly, 0U);
  EXPECT_EQ(counts.copied_unpinned, 0U);
}
void expect_all_returned(FakeAccelerator& device) {
  expect_clean(device);
  const FakeAccelerator::Counts counts = device.counts();
  EXPECT_GT(counts.pins, 0U);
  EXPECT_EQ(counts.pins, counts.unpins);
  EXPECT_EQ(counts.pinned_bytes, 0U);
  EXPECT_EQ(counts.open_fences, 0U);
}

TEST(PoolWithDevice, PinsABufferOnceHoweverOftenItIsUsed) {
  const auto device = std::make_shared<FakeAccelerator>();
  {
    const auto pool = std::make_shared<Pool>(kBytes, 1, 1, device);
    for (unsigned char i = 0; i < 50; ++i) (void)copy_one(*pool, *device, i);
    EXPECT_EQ(device->counts().pins, 1U);
    EXPECT_EQ(device->counts().unpins, 0U);
  }
  expect_all_returned(*device);
}

TEST(PoolWithDevice, MakesBuffersUpToItsLimitAndThenWaitsForTheOldestFence) {
  const auto device = std::make_shared<FakeAccelerator>();
  const auto pool = std::make_shared<Pool>(kBytes, 1, 3, device);
  device->hold_copies();
  std::vector<const std::byte*> used;
  for (unsigned char i = 0; i < 3; ++i) used.push_back(copy_one(*pool, *device, i));
  EXPECT_EQ(device->counts().pins, 3U);
  EXPECT_EQ(device->counts().waits, 0U);

  device->end_one();
  EXPECT_EQ(copy_one(*pool, *device, 9), used[0]) << "its fence has passed";

  const std::byte* next = nullptr;
  const std::size_t waits = device->counts().waits;
  std::thread taker([&] { next = memory(pool->take()); });
  device->await_waits(waits + 1);
  EXPECT_EQ(pool->held_bytes(), 0U) << "the lock is free while it waits";
  device->release_copies();
  taker.join();
  EXPECT_EQ(next, used[1]);
  EXPECT_EQ(device->counts().pins, 3U);
}

TEST(PoolWithDevice, DoesNotWaitForTheDeviceIfTheUserKeepsAllBuffers) {
  const auto device = std::make_shared<FakeAccelerator>();
  {
    const auto pool = std::make_shared<Pool>(kBytes, 1, 2, device);
    device->hold_copies();
    std::vector<Batch> kept;
    for (int i = 0; i < 10; ++i) {
      kept.push_back(pool->take());
      pool->deliver(kept.back());
      device->copy(Buffer::of(kept.back()).memory.bytes());
    }
    EXPECT_EQ(device->counts().pins, 10U);
    kept.clear();
    EXPECT_EQ(device->counts().unpins, 0U) << "no fence has passed";
    device->release_copies();
    for (unsigned char i = 0; i < 20; ++i) (void)copy_one(*pool, *device, i);
    pool->keep(1);
    EXPECT_EQ(device->counts().pinned_bytes, kBytes);
  }
  expect_all_returned(*device);
}

TEST(PoolWithDevice, NeedsNoFenceForABatchThatWasNotDelivered) {
  const auto device = std::make_shared<FakeAccelerator>();
  const auto pool = std::make_shared<Pool>(kBytes, 1, 1, device);
  for (int i = 0; i < 5; ++i) (void)pool->take();
  EXPECT_EQ(device->counts().fences, 0U);
  EXPECT_EQ(device->counts().pins, 1U);
}

TEST(PoolWithDevice, ReusesAtOnceIfTheDeviceHasNoFences) {
  const auto device = std::make_shared<FakeAccelerator>();
  device->fenced_ = false;
  const auto pool = std::make_shared<Pool>(kBytes, 1, 2, device);
  const std::byte* first = nullptr;
  {
    const Batch batch = pool->take();
    pool->deliver(batch);
    first = memory(batch);
  }
  EXPECT_EQ(memory(pool->take()), first);
  EXPECT_EQ(device->counts().pins, 1U);
}

TEST(PoolWithDevice, WaitsForFencesBeforeItShrinksAndBeforeItGoes) {
  for (const bool shrink : {true, false}) {
    const auto device = std::make_shared<FakeAccelerator>();
    auto pool = std::make_shared<Pool>(kBytes, 1, 4, device);
    device->hold_copies();
    for (unsigned char i = 0; i < 4; ++i) (void)copy_one(*pool, *device, i);
    std::thread ends([&] {
      if (shrink) pool->keep(0);
      pool.reset();
    });
    device->await_waits(1);
    EXPECT_EQ(device->counts().unpins, 0U);
    device->release_copies();
    ends.join();
    expect_all_returned(*device);
  }
}

TEST(PoolWithDevice, FreesLateReturnsOfAPoolThatHasEnded) {
  const auto device = std::make_shared<FakeAccelerator>();
  {
    std::vector<Batch> kept;
    {
      const auto pool = std::make_shared<Pool>(kBytes, 1, 2, device);
      for (int i = 0; i < 4; ++i) {
        kept.push_back(pool->take());
        pool->deliver(kept.back());
        device->copy(Buffer::of(kept.back()).memory.bytes());
      }
      pool->keep(0);
    }
    EXPECT_EQ(device->counts().unpins, 0U);
  }
  expect_all_returned(*device);
}

TEST(PoolWithDevice, PinsTheMemoryOfAResizedBatchAndDoesNotReuseIt) {
  const auto device = std::make_shared<FakeAccelerator>();
  {
    const auto pool = std::make_shared<Pool>(kBytes, 1, 2, device);
    {
      const Batch batch = pool->take();
      pool->resize(batch, 4 * kBytes);
      EXPECT_EQ(device->counts().pinned_bytes, 4 * kBytes);
      pool->deliver(batch);
      device->copy(Buffer::of(batch).memory.bytes());
    }
    EXPECT_EQ(pool->keep_free(), 4 * kBytes);
    pool->keep(1);
    EXPECT_EQ(Buffer::of(pool->take()).memory.size(), kBytes);
    EXPECT_EQ(device->counts().pinned_bytes, kBytes);
  }
  expect_all_returned(*device);
}

TEST(PoolWithDevice, ReportsMemoryThatCannotBePinned) {
  const auto device = std::make_shared<FakeAccelerator>();
  device->refuses_ = true;
  const auto pool = std::make_shared<Pool>(kBytes, 1, 1, device);
  EXPECT_THROW((void)pool->take(), std::bad_alloc);
  device->refuses_ = false;
  EXPECT_TRUE(pool->take());
}

TEST(PoolWithDevice, IsLeftAloneByAForkedChild) {
  const auto device = std::make_shared<FakeAccelerator>();
  auto pool = std::make_shared<Pool>(kBytes, 1, 2, device);
  Batch batch = pool->take();
  pool->deliver(batch);
  const FakeAccelerator::Counts before = device->counts();
  expect_success(start_child([&] {
    {
      const Batch own = pool->take();
      pool->deliver(own);
    }
    batch = {};
    pool->keep(0);
    pool.reset();
    const FakeAccelerator::Counts after = device->counts();
    return after.pins == before.pins && after.unpins == before.unpins &&
                   after.fences == before.fences && after.waits == before.waits
               ? 0
               : 1;
  }));
}

TEST(PoolWithDevice, SharesSpareBuffersWithThatDeviceOnly) {
  const auto device = std::make_shared<FakeAccelerator>();
  const auto other = std::make_shared<FakeAccelerator>();
  Budget budget(kMiB);
  SpareBuffers spare(budget);
  {
    const std::shared_ptr<Pool> pool = spare.take(kBytes, 1, device);
    (void)copy_one(*pool, *device);
    spare.give(pool);
  }
  EXPECT_EQ(budget.claims().at(0).bytes, kBytes) << "it is counted while it waits for the device";
  {
    const std::shared_ptr<Pool> again = spare.take(kBytes, 1, device);
    (void)copy_one(*again, *device);
    EXPECT_EQ(device->counts().pins, 1U);
    spare.give(again);
  }
  for (const std::shared_ptr<Accelerator>& next : {std::shared_ptr<Accelerator>(other), {}}) {
    const std::shared_ptr<Pool> pool = spare.take(kBytes, 1, next);
    const Batch batch = pool->take();
    EXPECT_EQ(device->counts().pinned_bytes, 0U);
    EXPECT_EQ(other->counts().pinned_bytes, next ? kBytes : 0U);
    spare.give(pool);
  }
  expect_all_returned(*device);
}

// A consumer that starts a copy of each batch and keeps only a few, with or without the rest of the
// run: nothing that the device reads may change, at any delay.
void run_once(unsigned seed, const Prospect& prospect, bool shuffle, bool with_spare) {
  std::mt19937 random(seed);
  const unsigned delays_us[] = {0, 20, 200, 1000};
  const auto device = std::make_shared<FakeAccelerator>(seed, delays_us[random() % 4]);
  {
    LookaheadRig rig((64 + random() % 512) * 1024, shuffle);
    rig.fake.set_prospect(prospect);
    SpareBuffers spare(rig.budget);
    const std::uint64_t batch_size = 20 + random() % 200;
    rig.schedule = {.size = kRows, .epoch = 1, .batch_size = batch_size};
    std::vector<Batch> kept;
    std::size_t most_kept = 0;
    for (int turn = 0; turn < 2; ++turn) {
      Lookahead loader(
          {rig.rows, *rig.order, rig.fake, rig.budget, with_spare ? &spare : nullptr, device},
          rig.schedule, 0);
      const std::uint64_t steps = random() % (rig.schedule.turns() + 1);
      for (std::uint64_t step = 0; step < steps; ++step) {
        const Batch batch = loader.next(std::chrono::minutes(1)).value();
        ASSERT_TRUE(batch);
        rig.expect_batch(batch, step);
        device->copy(batch.column(0));
        if (random() % 8 == 0) kept.push_back(batch);
        if (random() % 16 == 0) kept.clear();
        most_kept = std::max(most_kept, kept.size());
      }
      if (random() % 2 == 0) loader.cancel();
    }
    const std::uint64_t buffer_bytes = 4096 + batch_size * kRowBytes;
    // What the user had, and one batch that was released while its copy ran, are beside the budget.
    EXPECT_LE(device->counts().most_pinned_bytes,
              rig.budget.limit_bytes() + (most_kept + 1) * buffer_bytes);
  }
  expect_clean(*device);
  EXPECT_EQ(device->counts().pins, device->counts().unpins);
  EXPECT_EQ(device->counts().open_fences, 0U);
}

TEST(PoolWithDevice, ChangesNoByteThatTheDeviceStillReads) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    for (const Prospect& prospect : {kHeld, kOnDisk, kInMemory}) {
      SCOPED_TRACE(seed);
      run_once(seed, prospect, seed % 3 != 0, seed % 2 == 0);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace lowtide::pool_device_test

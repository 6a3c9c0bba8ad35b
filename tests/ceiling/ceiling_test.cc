#include "lowtide/ceiling.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "support/data_file.h"
#include "support/mapped_file.h"
#include "support/thrown.h"

namespace lowtide::ceiling_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

class CeilingTest : public testing::Test {
 protected:
  ~CeilingTest() override { stop_trimming(); }
  TempFolder folder_;
};

TEST_F(CeilingTest, KeepsALoopOverPartsWithinItsMemory) {
  const MappedFile file(sparse_file(folder_, "a", 128 * kMiB), 128 * kMiB);
  Ceiling ceiling(file.data(), file.size(), {.memory_bytes = 16 * kMiB});
  for (std::uint64_t at = 0; at < file.size(); at += 4 * kMiB) {
    ceiling.touch(file.data() + at, 4 * kMiB);
    file.read(at, 4 * kMiB);
    ASSERT_LE(file.entered_bytes().value(), 16 * kMiB);
  }
  EXPECT_GE(ceiling.stats().trims, 5u);
  EXPECT_EQ(ceiling.stats().memory_bytes, 16 * kMiB);
  EXPECT_EQ(ceiling.stats().refused, 0);
}

TEST_F(CeilingTest, AMapThatFitsIsNeverTrimmedAndNeedsNoThread) {
  const MappedFile file(sparse_file(folder_, "a", 16 * kMiB), 16 * kMiB);
  Ceiling ceiling(file.data(), file.size(), {.memory_bytes = 16 * kMiB});
  for (int i = 0; i < 100; ++i) ceiling.touch(file.data(), file.size());
  ceiling.touch_anywhere(1000);
  file.read(0, file.size());
  EXPECT_EQ(ceiling.stats().entered_bytes, file.size());
  EXPECT_EQ(ceiling.stats().trims, 0u);
}

TEST_F(CeilingTest, DoesNothingToWhatLiesAtTheAddressAfterClose) {
  const std::uint64_t size = 64 * kMiB;
  MappedFile file(sparse_file(folder_, "a", size), size);
  Ceiling ceiling(file.data(), size, {.memory_bytes = 8 * kMiB});
  void* const at = file.data();
  ceiling.close();
  file.unmap();
  void* const canary = ::mmap(at, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(canary, at);
  std::memset(canary, 0x5a, size);
  ceiling.touch(at, kMiB);
  ceiling.touch_anywhere(1000);
  EXPECT_EQ(ceiling.trim(), 0);
  ceiling.close();
  const auto* const bytes = static_cast<const unsigned char*>(canary);
  EXPECT_EQ(std::count(bytes, bytes + size, 0x5a), static_cast<std::ptrdiff_t>(size));
  ::munmap(canary, size);
}

TEST_F(CeilingTest, WhatWasWrittenSurvivesEveryTrim) {
  const std::uint64_t size = 64 * kMiB;
  const std::string path = sparse_file(folder_, "a", size);
  const MappedFile file(path, size, PROT_READ | PROT_WRITE);
  Ceiling ceiling(file.data(), size, {.memory_bytes = 8 * kMiB});
  for (std::uint64_t at = 0; at < size; at += 4096) {
    ceiling.touch(file.data() + at, 4096);
    std::memset(file.data() + at, static_cast<int>(at / 4096 % 251), 4096);
  }
  EXPECT_GE(ceiling.stats().trims, 7u);
  for (std::uint64_t at = 0; at < size; at += 4096) {
    ceiling.touch(file.data() + at, 4096);
    ASSERT_EQ(file.data()[at + 17], at / 4096 % 251);
  }
}

TEST_F(CeilingTest, DropsThePageCacheOfAColdFileAndLeavesNothingAtClose) {
  const std::string path = folder_.write("a", pattern(24 * kMiB));
  if (!evict_all(path)) GTEST_SKIP() << "this file system keeps its cache";
  if (!cached_bytes(path)) GTEST_SKIP() << "cachestat is not available";
  MappedFile file(path, 24 * kMiB);
  (void)::madvise(file.data(), file.size(), MADV_RANDOM);  // nothing ahead of what is read
  Ceiling ceiling(file.data(), file.size(), {.memory_bytes = 8 * kMiB, .drop_path = path});
  for (std::uint64_t at = 0; at < file.size(); at += kMiB) {
    ceiling.touch(file.data() + at, kMiB);
    file.read(at, kMiB);
    EXPECT_LE(cached_bytes(path).value(), 16 * kMiB);
  }
  ceiling.close();
  EXPECT_LE(cached_bytes(path).value(), 2 * kMiB);
}

TEST_F(CeilingTest, ReleaseTellsWhatLeftAndRefusesPrivateAndLockedMaps) {
  const std::string path = folder_.write("a", pattern(8 * kMiB));
  const MappedFile shared(path, 8 * kMiB);
  shared.read(0, 8 * kMiB);
  EXPECT_EQ(release_map(shared.data(), 8 * kMiB, false, path), 8 * kMiB);
  EXPECT_EQ(release_map(shared.data(), 8 * kMiB, true, path), 0u);

  const MappedFile own(path, 8 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  own.data()[5] = 99;
  EXPECT_THROW(release_map(own.data(), 8 * kMiB, false, path), std::invalid_argument);
  EXPECT_EQ(own.data()[5], 99);

  if (!lock_pages(shared.data(), 4096)) GTEST_SKIP() << "pages cannot be locked here";
  const IoError error =
      caught<IoError>([&] { (void)release_map(shared.data(), 8 * kMiB, false, path); }).value();
  EXPECT_EQ(error.err, EINVAL);
  EXPECT_NE(std::string(error.what()).find("locked"), std::string::npos) << error.what();
}

// Each thread maps, reads and drops; what lies where a map was a moment ago must stay as it is.
TEST_F(CeilingTest, EightThreadsThatMapReadAndDropNeverLoseAByteOfOthers) {
  constexpr std::uint64_t kSize = 24 * kMiB;
  constexpr int kRounds = 12;
  const std::string path = sparse_file(folder_, "a", kSize);
  std::atomic<int> wrong{0};
  const auto work = [&](unsigned seed) {
    for (int round = 0; round < kRounds; ++round) {
      MappedFile file(path, kSize);
      void* const at = file.data();
      {
        Ceiling ceiling(at, kSize, {.memory_bytes = 8 * kMiB});
        for (std::uint64_t part = 0; part < kSize; part += 2 * kMiB) {
          if ((round + part / kMiB) % 3 != 0) ceiling.touch(file.data() + part, 2 * kMiB);
          if (file.read(part, 2 * kMiB) != 0) ++wrong;
        }
        if (seed % 2 == 0) (void)ceiling.trim();
      }
      file.unmap();
      void* const canary = ::mmap(at, kSize, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (canary == MAP_FAILED) continue;  // another thread was faster
      auto* const bytes = static_cast<volatile unsigned char*>(canary);
      for (std::uint64_t i = 0; i < kSize; i += 4096) bytes[i] = 0xa5;
      std::this_thread::yield();
      for (std::uint64_t i = 0; i < kSize; i += 4096) wrong += bytes[i] != 0xa5;
      ::munmap(canary, kSize);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 8; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace lowtide::ceiling_test

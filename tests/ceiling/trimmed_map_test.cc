#include "ceiling/trimmed_map.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

#include "os/sys.h"
#include "support/mapped_file.h"

namespace lowtide::trimmed_map_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kSlab = TrimmedMap::kSlabBytes;

int madvises = 0;
int refuse_madvise(void*, std::size_t, int) {
  ++madvises;
  errno = EINVAL;
  return -1;
}

class TrimmedMapTest : public testing::Test {
 protected:
  TempFolder folder_;
  MappedFile file_{sparse_file(folder_, "a", 256 * kMiB), 256 * kMiB};

  void use(TrimmedMap& map, std::uint64_t offset, std::uint64_t size) const {
    map.touch(file_.data() + offset, size);
    file_.read(offset, size);
  }
};

TEST_F(TrimmedMapTest, StaysWithinItsLimitWhenEveryPartIsAnnounced) {
  TrimmedMap map(file_.data(), file_.size(), 0, 32 * kMiB, nullptr);
  for (std::uint64_t at = 0; at < file_.size(); at += kMiB) {
    use(map, at, kMiB);
    ASSERT_LE(file_.entered_bytes().value(), 32 * kMiB);
  }
  EXPECT_GE(map.trims(), 256u / 32 - 1);
  EXPECT_LE(map.trims(), 2 * 256u / 32);
}

TEST_F(TrimmedMapTest, DoesNotTrimPartsThatFitTogether) {
  TrimmedMap map(file_.data(), file_.size(), 0, 32 * kMiB, nullptr);
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t at = 0; at < 16 * kMiB; at += kMiB) use(map, at, kMiB);
  }
  EXPECT_EQ(map.trims(), 0u);
  EXPECT_EQ(file_.entered_bytes(), 16 * kMiB);
}

TEST_F(TrimmedMapTest, CountsBeforeItTrimsBecauseATouchMayEnterLittle) {
  TrimmedMap map(file_.data(), file_.size(), 0, 32 * kMiB, nullptr);
  // Nothing is read: what was announced is no reason to give pages back.
  for (std::uint64_t at = 0; at < file_.size(); at += kSlab) map.touch(file_.data() + at, 1);
  EXPECT_EQ(map.trims(), 0u);
}

TEST_F(TrimmedMapTest, LeavesAPartLargerThanTheLimitToOthersAndCountsTheNext) {
  TrimmedMap map(file_.data(), file_.size(), 0, 32 * kMiB, nullptr);
  use(map, 0, 100 * kMiB);
  EXPECT_EQ(map.trims(), 0u);
  use(map, 128 * kMiB, kMiB);
  EXPECT_EQ(map.trims(), 1u);
  EXPECT_LE(file_.entered_bytes().value(), 2 * kMiB);
}

TEST_F(TrimmedMapTest, UnknownPlacesCountAsASlabEach) {
  TrimmedMap map(file_.data(), file_.size(), 0, 32 * kMiB, nullptr);
  file_.read(0, 40 * kMiB);
  map.touch_anywhere(15);
  EXPECT_EQ(map.trims(), 0u);
  map.touch_anywhere(2);
  EXPECT_EQ(map.trims(), 1u);
  map.touch_anywhere(~std::uint64_t{0});  // as many as the limit allows
  EXPECT_EQ(map.headroom_bytes(), 0u);
}

TEST_F(TrimmedMapTest, AccountTrimsWhatIsOverTheLimitAndNothingElse) {
  TrimmedMap map(file_.data(), file_.size(), 0, 32 * kMiB, nullptr);
  PageCounter counter;
  file_.read(0, 30 * kMiB);
  map.account(counter);
  EXPECT_EQ(map.trims(), 0u);
  EXPECT_LE(map.headroom_bytes(), 2 * kMiB);
  file_.read(0, 40 * kMiB);
  map.account(counter);
  EXPECT_EQ(map.trims(), 1u);
  EXPECT_EQ(file_.entered_bytes(), 0u);
  EXPECT_EQ(map.headroom_bytes(), 32 * kMiB);
}

TEST_F(TrimmedMapTest, AccountForgetsNothingThatWasAnnouncedAndNotReadYet) {
  TrimmedMap map(file_.data(), file_.size(), 0, 32 * kMiB, nullptr);
  PageCounter counter;
  map.touch(file_.data(), 16 * kMiB);
  map.account(counter);
  EXPECT_EQ(map.headroom_bytes(), 16 * kMiB);
  EXPECT_EQ(map.spare_bytes(), 32 * kMiB);  // nothing is entered yet
  file_.read(64 * kMiB, 40 * kMiB);
  map.account(counter);
  EXPECT_EQ(map.trims(), 1u);
  EXPECT_EQ(map.headroom_bytes(), 16 * kMiB);
}

TEST_F(TrimmedMapTest, TouchesOutsideTheMapDoNothing) {
  TrimmedMap map(file_.data() + kMiB, 32 * kMiB, 0, 8 * kMiB, nullptr);
  map.touch(file_.data(), 1);
  map.touch(file_.data() + 33 * kMiB, 100 * kMiB);
  EXPECT_EQ(map.headroom_bytes(), 8 * kMiB);
  map.touch(file_.data() + 33 * kMiB - 1, 100 * kMiB);
  EXPECT_EQ(map.headroom_bytes(), 6 * kMiB);
}

TEST_F(TrimmedMapTest, SlabsAreThoseOfTheFileNotOfTheAddress) {
  TrimmedMap map(file_.data(), file_.size(), kSlab - 4096, 32 * kMiB, nullptr);
  map.touch(file_.data(), 4096 + 1);
  EXPECT_EQ(map.headroom_bytes(), 32 * kMiB - 2 * kSlab);
}

TEST_F(TrimmedMapTest, WhatIsLentLowersTheLimitButNotBelowTheLeast) {
  TrimmedMap map(file_.data(), file_.size(), 0, 64 * kMiB, nullptr);
  map.lend(16 * kMiB);
  EXPECT_EQ(map.limit_bytes(), 48 * kMiB);
  map.lend(32 * kMiB);
  EXPECT_EQ(map.limit_bytes(), 32 * kMiB);  // instead, not as well
  map.lend(1000 * kMiB);
  EXPECT_EQ(map.limit_bytes(), TrimmedMap::kLeastLimitBytes);
}

TEST_F(TrimmedMapTest, ARefusalIsKeptAndDoesNotCountAsATrim) {
  TrimmedMap map(file_.data(), file_.size(), 0, 8 * kMiB, nullptr);
  const sys::Fault fault(sys::table.madvise, &refuse_madvise);
  EXPECT_EQ(map.trim(), EINVAL);
  EXPECT_EQ(map.trims(), 0u);
  EXPECT_EQ(map.refused(), EINVAL);
}

}  // namespace
}  // namespace lowtide::trimmed_map_test

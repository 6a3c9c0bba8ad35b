#include "system/bare_maps.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "os/temp_folder.h"
#include "support/lock_pages.h"

namespace lowtide::bare::bare_maps_test {
namespace {

constexpr std::size_t kPages = 256;

// A file of kPages pages, mapped; each test touches what it needs.
class BareMaps : public testing::TestWithParam<OwnMaps::Ways> {
 protected:
  void SetUp() override {
    std::ofstream(path_, std::ios::binary) << std::string(kPages * page_bytes(), 'x');
    ASSERT_TRUE(maps_.open(GetParam()));
  }
  void TearDown() override {
    maps_.close();
    if (at_ != nullptr) ::munmap(at_, kPages * page_bytes());
  }
  void map(int protection, int flags) {
    const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    void* const at = ::mmap(nullptr, kPages * page_bytes(), protection, flags, fd, 0);
    ::close(fd);
    ASSERT_NE(at, MAP_FAILED);
    at_ = static_cast<char*>(at);
    shared_ = flags == MAP_SHARED;
    // Locked pages are resident whatever the machine does meanwhile.
    if (!lock_pages(at_, kPages * page_bytes())) GTEST_SKIP() << "mlock: " << std::strerror(errno);
  }
  [[nodiscard]] Range range(std::size_t first = 0, std::size_t count = kPages) const {
    const auto start = reinterpret_cast<std::uintptr_t>(at_) + first * page_bytes();
    return {start, start + count * page_bytes()};
  }
  [[nodiscard]] std::uint64_t resident(Range what) {
    maps_.rewind();
    runs_ = 0;
    return maps_.resident(what, shared_, runs_);
  }

  TempFolder folder_;
  std::string path_ = folder_ / "x";
  OwnMaps maps_;
  char* at_ = nullptr;
  bool shared_ = false;
  std::uint64_t runs_ = 0;
};

TEST_P(BareMaps, CountsThePagesOfAFile) {
  map(PROT_READ, MAP_SHARED);
  EXPECT_EQ(resident(range()), kPages * page_bytes());
  EXPECT_LE(runs_, 1U);  // 0 where the kernel does not tell
  ASSERT_TRUE(unlock_pages(at_, kPages * page_bytes()));
  ASSERT_EQ(advise(range(), MADV_DONTNEED), 0);
  EXPECT_EQ(resident(range()), 0U);
}

TEST_P(BareMaps, PagesThatWereWrittenIntoAPrivateMapAreNotTheFiles) {
  map(PROT_READ, MAP_PRIVATE);
  const bool unknown = GetParam() == OwnMaps::Ways::no_pagemap;  // counts as written
  EXPECT_EQ(maps_.written(range()), unknown);
  ASSERT_TRUE(
      unlock_pages(at_, kPages * page_bytes()));  // else the kernel copies all of it at once
  ASSERT_EQ(::mprotect(at_, kPages * page_bytes(), PROT_READ | PROT_WRITE), 0);
  for (std::size_t page = 10; page < 20; ++page) at_[page * page_bytes()] = 'y';
  EXPECT_LE(resident(range()), (kPages - 10) * page_bytes());
  EXPECT_TRUE(maps_.written(range()));
  EXPECT_TRUE(maps_.written(range(19, 1)));
  EXPECT_EQ(maps_.written(range(20, 100)), unknown);
}

TEST_P(BareMaps, SeesWritesThatWentPastTheProtection) {
  map(PROT_READ, MAP_PRIVATE);
  ASSERT_TRUE(unlock_pages(at_, kPages * page_bytes()));
  const int memory = ::open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  ASSERT_GE(memory, 0);
  const auto offset = static_cast<off_t>(range(77, 1).start);
  const ssize_t wrote = ::pwrite(memory, "y", 1, offset);
  ::close(memory);
  if (wrote != 1) GTEST_SKIP() << "/proc/self/mem: " << std::strerror(errno);
  EXPECT_TRUE(maps_.written(range()));
  EXPECT_EQ(maps_.written(range(0, 77)), GetParam() == OwnMaps::Ways::no_pagemap);
}

TEST_P(BareMaps, VisitsTheRunsOfTheFilesPagesBetweenThoseThatWereWritten) {
  map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
  ASSERT_TRUE(unlock_pages(at_, kPages * page_bytes()));
  ASSERT_EQ(advise(range(), MADV_DONTNEED), 0);  // locked and writable, all of it was copied
  for (std::size_t page = 0; page < kPages; ++page) {
    (void)static_cast<volatile char*>(at_)[page * page_bytes()];
  }
  at_[10 * page_bytes()] = at_[20 * page_bytes()] = 'y';
  std::vector<Range> visited;
  const auto note = [](void* runs, Range run) {
    static_cast<std::vector<Range>*>(runs)->push_back(run);
    return true;
  };
  const bool told = maps_.visit_resident(range(), note, &visited);
  EXPECT_EQ(told, GetParam() != OwnMaps::Ways::no_pagemap);
  std::uint64_t bytes = 0;
  for (const Range& run : visited) {
    bytes += run.bytes();
    for (const std::size_t page : {10U, 20U}) {
      EXPECT_TRUE(run.end <= range(page, 1).start || run.start >= range(page, 1).end);
    }
  }
  EXPECT_EQ(bytes, told ? (kPages - 2) * page_bytes() : 0);
}

TEST_P(BareMaps, FindsAMappingByAnAddressInItOrBeforeIt) {
  map(PROT_READ, MAP_SHARED);
  struct stat file {};
  ASSERT_EQ(::stat(path_.c_str(), &file), 0);
  maps_.rewind();
  Area area;
  std::vector<char> path(kPathBytes);
  ASSERT_TRUE(maps_.find(range(5, 1).start, area, path.data()));
  EXPECT_EQ(area.range.start, range().start);
  EXPECT_EQ(area.range.end, range().end);
  EXPECT_EQ(area.inode, file.st_ino);
  EXPECT_TRUE(area.shared);
  EXPECT_FALSE(area.writable);
  if (GetParam() == OwnMaps::Ways::best && path[0] != 0) {
    EXPECT_EQ(std::string(path.data()), path_);
  }
  maps_.rewind();
  EXPECT_FALSE(maps_.find(~std::uintptr_t{0} - page_bytes(), area));
}

TEST_P(BareMaps, TwoRangesOfOneMappingAreCountedApart) {
  map(PROT_READ, MAP_SHARED);
  maps_.rewind();
  EXPECT_EQ(maps_.resident(range(0, 100), true, runs_), 100 * page_bytes());
  EXPECT_EQ(maps_.resident(range(100, 50), false, runs_), 50 * page_bytes());
}

TEST_P(BareMaps, StatmSeesWhatIsMapped) {
  const std::uint64_t before = maps_.shared_bytes();
  map(PROT_READ, MAP_SHARED);
  EXPECT_GE(maps_.shared_bytes() + (1 << 20), before + kPages * page_bytes());
}

INSTANTIATE_TEST_SUITE_P(Ways, BareMaps,
                         testing::Values(OwnMaps::Ways::best, OwnMaps::Ways::old_kernel,
                                         OwnMaps::Ways::no_pagemap),
                         [](const auto& one) {
                           if (one.param == OwnMaps::Ways::best) return "Best";
                           return one.param == OwnMaps::Ways::old_kernel ? "OldKernel"
                                                                         : "NoPagemap";
                         });

}  // namespace
}  // namespace lowtide::bare::bare_maps_test

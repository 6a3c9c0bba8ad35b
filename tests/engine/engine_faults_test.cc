// What goes wrong under an engine comes back as an Outcome, and what can be helped is.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "os/sys.h"
#include "support/data_file.h"
#include "support/read_rig.h"

namespace lowtide::engine_faults_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kBudgetBytes = 16 * kMiB;

class EngineFaults : public testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam().kind); !why.empty()) GTEST_SKIP() << why;
    held_ = pattern(4 * kMiB + 123);
    path_ = folder_.write("data.bin", held_);
    evict(path_);
  }
  [[nodiscard]] EngineRig rig() const { return {files_of({path_}), GetParam(), kBudgetBytes}; }

  TempFolder folder_;
  std::string held_, path_;
};

TEST_P(EngineFaults, ReportsAFileThatWasTruncatedSinceItWasOpened) {
  constexpr std::uint64_t kLeftBytes = kMiB + 100;
  const EngineRig rig = this->rig();
  const CheckedReads wanted({{.offset_bytes = 0, .size_bytes = 648, .shard = 0},
                             {.offset_bytes = 5000, .size_bytes = 648, .shard = 0},
                             {.offset_bytes = kLeftBytes - 50, .size_bytes = 648, .shard = 0},
                             {.offset_bytes = 900'000, .size_bytes = 648, .shard = 0}});
  ASSERT_EQ(::truncate(path_.c_str(), kLeftBytes), 0);
  for (const bool here : {true, false}) {
    WaitedSet set(wanted.reads());
    if (!here) rig.engine->submit(set);
    const Outcome outcome = here ? rig.engine->read(wanted.reads()) : set.wait();
    if (outcome.ok() && GetParam().kind == EngineKind::memory) {
      wanted.expect_bytes({&held_});  // it held the old bytes already
      continue;
    }
    EXPECT_TRUE(outcome.ended);
    EXPECT_EQ(outcome.err, 0);
    EXPECT_EQ(outcome.read, 2U);
    EXPECT_EQ(outcome.found_bytes, kLeftBytes);
  }
  const CheckedReads beyond({{.offset_bytes = 3 * kMiB, .size_bytes = 648, .shard = 0}});
  const Outcome outcome = rig.engine->read(beyond.reads());
  if (outcome.ok() && GetParam().kind == EngineKind::memory) return;
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.found_bytes, kLeftBytes) << "how far the file goes, not where the read began";
}

// A kernel that asks for direct reads of 64 KiB.
decltype(sys::Table::statx) real_statx;
int coarse_statx(int dirfd, const char* path, int flags, unsigned mask, struct statx* out) {
  constexpr std::size_t kMemoryAlignPlace = 0x98, kOffsetAlignPlace = 0x9C;
  constexpr std::uint32_t kAsked = 64 * 1024;
  const int result = real_statx(dirfd, path, flags, mask, out);
  char* raw = reinterpret_cast<char*>(out);
  std::memcpy(raw + kMemoryAlignPlace, &kAsked, sizeof kAsked);
  std::memcpy(raw + kOffsetAlignPlace, &kAsked, sizeof kAsked);
  return result;
}

TEST_P(EngineFaults, ReadsThroughTheCacheWhereDirectReadsWouldBeTooCoarse) {
  real_statx = sys::table.statx;
  const sys::Fault fault(sys::table.statx, &coarse_statx);
  if (GetParam().kind == EngineKind::memory)
    GTEST_SKIP() << "the data does not fit so small a budget";
  const EngineRig rig(files_of({path_}), GetParam(), 200 * 1024);
  const CheckedReads wanted(rows_apart(300, 648, 7001));
  EXPECT_TRUE(rig.engine->read(wanted.reads()).ok());
  wanted.expect_bytes({&held_});
}

std::atomic<bool> no_memory;
decltype(sys::Table::mmap) real_mmap;
void* scarce_mmap(void* address, std::size_t size, int protection, int flags, int fd,
                  off_t offset) {
  if (!no_memory) return real_mmap(address, size, protection, flags, fd, offset);
  errno = ENOMEM;
  return reinterpret_cast<void*>(-1);  // MAP_FAILED
}

TEST_P(EngineFaults, ReportsThatThereIsNoMemoryForItsBuffers) {
  real_mmap = sys::table.mmap;
  no_memory = false;
  const sys::Fault fault(sys::table.mmap, &scarce_mmap);
  const EngineRig rig = this->rig();
  no_memory = true;
  const CheckedReads wanted(rows_apart(300, 648, 7001));
  const Outcome outcome = rig.engine->read(wanted.reads());
  no_memory = false;
  if (outcome.ok()) {
    wanted.expect_bytes({&held_});  // it needed none
  } else {
    EXPECT_EQ(outcome.err, ENOMEM);
    EXPECT_TRUE(rig.engine->read(wanted.reads()).ok()) << "it works again when there is some";
  }
}

TEST_P(EngineFaults, ReportsAFileThatIsGoneByTheTimeItIsNeeded) {
  const std::string other = folder_.write("other.bin", pattern(kMiB, 2));
  EngineRig rig(files_of({path_, other}, 1), GetParam(), kBudgetBytes);
  (void)rig.files->open(0);  // closes the other
  ASSERT_EQ(::unlink(other.c_str()), 0);
  const CheckedReads wanted({{.offset_bytes = 0, .size_bytes = 648, .shard = 0},
                             {.offset_bytes = 700, .size_bytes = 648, .shard = 1}});
  const Outcome outcome = rig.engine->read(wanted.reads());
  if (outcome.ok() && GetParam().kind == EngineKind::memory) return;
  EXPECT_EQ(outcome.err, ENOENT);
  EXPECT_EQ(outcome.read, 1U);
}

TEST_P(EngineFaults, GivesTheOldBytesOrAnErrorWhenTheFileIsReplaced) {
  const std::string other = folder_.write("other.bin", pattern(kMiB, 2));
  EngineRig rig(files_of({path_, other}, 1), GetParam(), kBudgetBytes);
  const std::string fresh = folder_.write("fresh.bin", pattern(held_.size(), 99));
  ASSERT_EQ(::rename(fresh.c_str(), path_.c_str()), 0);
  for (int round = 0; round < 2; ++round) {
    const CheckedReads wanted(rows_apart(50, 648, 70'000));
    const Outcome outcome = rig.engine->read(wanted.reads().first(50));
    if (outcome.ok()) {
      wanted.expect_bytes({&held_});
    } else {
      EXPECT_EQ(outcome.err, ESTALE);
    }
    (void)rig.files->open(1);  // closes the other
  }
}

std::atomic<int> faults_left;
ssize_t (*plain_pread)(int, void*, std::size_t, off_t);

ssize_t pread_with_eio(int fd, void* into, std::size_t size, off_t offset) {
  if (offset + static_cast<off_t>(size) > static_cast<off_t>(kMiB)) {
    errno = EIO;
    return -1;
  }
  return plain_pread(fd, into, size, offset);
}

ssize_t pread_in_bits(int fd, void* into, std::size_t size, off_t offset) {
  const int left = faults_left.fetch_sub(1);
  if (left > 0 && left % 2 == 0) {
    errno = EINTR;
    return -1;
  }
  // Whole sectors, so that a direct read stays one; at least half of what was asked.
  if (left > 0 && size > 1024) size = size / 2 / 512 * 512;
  return plain_pread(fd, into, size, offset);
}

class PreadFaults : public testing::TestWithParam<CacheMode> {
 protected:
  TempFolder folder_;
  std::string held_ = pattern(4 * kMiB + 123);
  std::string path_ = folder_.write("data.bin", held_);
};

TEST_P(PreadFaults, ReportAnErrorOfTheDiskWithTheReadThatMetIt) {
  evict(path_);
  const auto files = files_of({path_});
  const sys::Fault fault(sys::table.pread, &pread_with_eio);
  plain_pread = fault.real();
  const EngineRig rig(files, {EngineKind::pread, GetParam()}, kBudgetBytes);
  const CheckedReads wanted({{.offset_bytes = 0, .size_bytes = 648, .shard = 0},
                             {.offset_bytes = 3 * kMiB, .size_bytes = 648, .shard = 0},
                             {.offset_bytes = 5000, .size_bytes = 648, .shard = 0}});
  const Outcome outcome = rig.engine->read(wanted.reads());
  EXPECT_EQ(outcome.err, EIO);
  EXPECT_FALSE(outcome.ended);
  EXPECT_EQ(outcome.read, 1U);
}

TEST_P(PreadFaults, AreHelpedWhereACallIsInterruptedOrGivesLess) {
  for (const bool cold : {true, false}) {
    cold ? evict(path_) : warm(path_, 0, held_.size());
    const auto files = files_of({path_});
    const sys::Fault fault(sys::table.pread, &pread_in_bits);
    plain_pread = fault.real();
    faults_left = 300;
    const EngineRig rig(files, {EngineKind::pread, GetParam()}, kBudgetBytes);
    const CheckedReads wanted(rows_apart(60, 10'000, 69'000));
    ASSERT_TRUE(rig.engine->read(wanted.reads()).ok());
    wanted.expect_bytes({&held_});
    EXPECT_LT(faults_left, 300) << "the fault was met";
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, PreadFaults, testing::Values(CacheMode::keep, CacheMode::drop),
                         [](const auto& one) {
                           return one.param == CacheMode::keep ? "keep" : "drop";
                         });

INSTANTIATE_TEST_SUITE_P(EveryEngine, EngineFaults, testing::ValuesIn(every_engine()),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace lowtide::engine_faults_test

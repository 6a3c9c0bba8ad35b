#include "engine/piece_reader.h"

#include <gtest/gtest.h>
#if __has_include(<liburing.h>)
#include <liburing.h>
#endif

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "os/files.h"
#include "os/sys.h"
#include "support/data_file.h"
#include "support/read_rig.h"

namespace lowtide::piece_reader_test {
namespace {

constexpr std::size_t kReads = PieceReader::kMostReads;

std::atomic<int> preads, submits, faults_left;
ssize_t (*plain_pread)(int, void*, std::size_t, off_t) = sys::table.pread;
int (*plain_submit)(struct io_uring*, unsigned);

// Not the one at the end of the file with which it is opened.
ssize_t counted_pread(int fd, void* into, std::size_t size, off_t offset) {
  const ssize_t got = plain_pread(fd, into, size, offset);
  if (got != 0) ++preads;
  return got;
}
int counted_submit(struct io_uring* ring, unsigned count) {
  ++submits;
  return plain_submit(ring, count);
}

class PieceReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    plain_submit = submit_.real();
    if (const std::string why = why_not(EngineKind::uring); !why.empty()) GTEST_SKIP() << why;
    preads = submits = faults_left = 0;
  }
  [[nodiscard]] static PieceReader reader(const std::shared_ptr<Files>& files, bool ring = true) {
    return {ShardOpener(files, Access::buffered, true), ring};
  }

  // Whatever file system the tests run on.
  const sys::Fault<decltype(plain_pread)> at_once_{
      sys::table.pread_now, +[](int, void*, std::size_t, off_t) -> ssize_t { return 0; }};
  const sys::Fault<decltype(plain_pread)> pread_{sys::table.pread, &counted_pread};
  const sys::Fault<decltype(plain_submit)> submit_{sys::table.ring_submit_and_wait,
                                                   &counted_submit};
  TempFolder folder_;
  const std::string held_ = pattern(kReads * 3000);
  const std::string path_ = folder_.write("a", held_);
  const std::shared_ptr<Files> files_ = files_of({path_});
  const CheckedReads rows_{rows_apart(kReads, 648, 3000)};
};

TEST_F(PieceReaderTest, ReadsShortOnesTogetherInOneCall) {
  PieceReader with = reader(files_);
  ASSERT_TRUE(with.read(rows_.reads()).ok());
  rows_.expect_bytes({&held_});
  EXPECT_EQ(submits, 1);
  EXPECT_EQ(preads, 0);
}

TEST_F(PieceReaderTest, ReadsFewOrLongOnesOneByOne) {
  PieceReader with = reader(files_);
  ASSERT_TRUE(with.read(rows_.reads().first(7)).ok());
  const CheckedReads long_ones(rows_apart(10, 17 * 1024, 1000));
  ASSERT_TRUE(with.read(long_ones.reads()).ok());
  long_ones.expect_bytes({&held_});
  EXPECT_EQ(submits, 0);
  EXPECT_EQ(preads, 17);
}

TEST_F(PieceReaderTest, MakesNoRingUnlessItMay) {
  PieceReader without = reader(files_, false);
  ASSERT_TRUE(without.read(rows_.reads()).ok());
  rows_.expect_bytes({&held_});
  EXPECT_EQ(submits, 0);
  EXPECT_EQ(preads, static_cast<int>(kReads));
}

TEST_F(PieceReaderTest, DoesWithoutARingThatCannotBeMade) {
  static int tries;
  tries = 0;
  const sys::Fault fault(
      sys::table.ring_init, +[](unsigned, struct io_uring*) {
        ++tries;
        return -ENOMEM;
      });
  PieceReader with = reader(files_);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(with.read(rows_.reads()).ok());
  rows_.expect_bytes({&held_});
  EXPECT_EQ(tries, 1) << "and does not ask again";
}

#if __has_include(<liburing.h>)
TEST_F(PieceReaderTest, DoesWithoutARingThatCountsAsLockedMemory) {
  static int (*real)(unsigned, struct io_uring*);
  const sys::Fault fault(
      sys::table.ring_init, +[](unsigned entries, struct io_uring* ring) {
        const int made = real(entries, ring);
        ring->features &= ~IORING_FEAT_NATIVE_WORKERS;  // as before Linux 5.12
        return made;
      });
  real = fault.real();
  PieceReader with = reader(files_);
  ASSERT_TRUE(with.read(rows_.reads()).ok());
  rows_.expect_bytes({&held_});
  EXPECT_EQ(submits, 0);
}
#endif

TEST_F(PieceReaderTest, DoesWithoutARingThatBreaks) {
  const sys::Fault fault(
      sys::table.ring_submit_and_wait, +[](struct io_uring*, unsigned) {
        ++submits;
        return -ENXIO;
      });
  PieceReader with = reader(files_);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(with.read(rows_.reads()).ok());
  rows_.expect_bytes({&held_});
  EXPECT_EQ(submits, 1);
}

TEST_F(PieceReaderTest, FinishesWhatTheRingDidNotBringWhole) {
  for (int (*const result)(int) :
       {+[](int got) { return faults_left.fetch_sub(1) > 0 ? got - 77 : got; },
        +[](int got) { return faults_left.fetch_sub(1) > 0 ? -EIO : got; },
        +[](int got) { return faults_left.fetch_sub(1) > 0 ? 0 : got; }}) {
    const sys::Fault fault(sys::table.ring_result, result);
    const CheckedReads wanted(rows_apart(kReads, 648, 3000));
    PieceReader with = reader(files_);
    faults_left = 20;
    preads = 0;
    ASSERT_TRUE(with.read(wanted.reads()).ok());
    wanted.expect_bytes({&held_});
    EXPECT_EQ(preads, 20);
  }
}

TEST_F(PieceReaderTest, TellsWhichReadFailedAndWhy) {
  const sys::Fault ring(
      sys::table.ring_result, +[](int got) { return faults_left.fetch_sub(1) == 1 ? -EIO : got; });
  const sys::Fault plain(
      sys::table.pread, +[](int, void*, std::size_t, off_t) -> ssize_t {
        errno = EIO;
        return -1;
      });
  PieceReader with = reader(files_);
  faults_left = 11;
  const Outcome outcome = with.read(rows_.reads());
  EXPECT_EQ(outcome.err, EIO);
  EXPECT_FALSE(outcome.ended);
  EXPECT_EQ(outcome.read, 10U);
}

TEST_F(PieceReaderTest, TellsWhereAFileEndsThatWasCutShort) {
  PieceReader with = reader(files_);
  ASSERT_TRUE(with.read(rows_.reads()).ok());
  std::filesystem::resize_file(path_, 30'100);
  const Outcome outcome = with.read(rows_.reads());
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.err, 0);
  EXPECT_EQ(outcome.read, 10U);
  EXPECT_EQ(outcome.found_bytes, 30'100U);
}

TEST_F(PieceReaderTest, ReadsOneByOneWhatAnotherThreadWouldHaveToReadForTheRing) {
  const sys::Fault fault(
      sys::table.pread_now, +[](int, void*, std::size_t, off_t) -> ssize_t {
        errno = EOPNOTSUPP;
        return -1;
      });
  PieceReader with = reader(files_);
  ASSERT_TRUE(with.read(rows_.reads()).ok());
  rows_.expect_bytes({&held_});
  EXPECT_EQ(submits, 0);
}

// Few files share a ring. With many, each thread would need a descriptor for each of them.
TEST_F(PieceReaderTest, ReadsFewFilesTogetherAndManyOneByOne) {
  for (const std::uint32_t count : {2U, 4U, 5U}) {
    std::vector<std::string> held{held_}, paths{path_};
    for (std::uint32_t file = 1; file < count; ++file) {
      held.push_back(pattern(9000).substr(file));
      paths.push_back(folder_.write("b" + std::to_string(file), held.back()));
    }
    std::vector<Extent> extents;
    for (std::uint32_t i = 0; i < kReads; ++i) {
      extents.push_back({.offset_bytes = i * 100, .size_bytes = 50, .shard = i / 10 % count});
    }
    const CheckedReads wanted(extents);
    PieceReader with = reader(files_of(paths));
    for (int round = 0; round < 2; ++round) {
      preads = submits = 0;
      ASSERT_TRUE(with.read(wanted.reads()).ok());
      std::vector<const std::string*> all;
      for (const std::string& one : held) all.push_back(&one);
      wanted.expect_bytes(all);
      EXPECT_EQ(submits, count <= 4 ? 1 : 0);
      EXPECT_EQ(preads, count <= 4 ? 0 : static_cast<int>(kReads));
    }
  }
}

TEST_F(PieceReaderTest, ServesAutomaticAndNotPreadByName) {
  warm(path_, 0, held_.size());
  for (const EngineKind kind : {EngineKind::automatic, EngineKind::pread}) {
    const EngineRig rig(files_, {kind, CacheMode::keep}, 16 << 20);
    std::vector<Extent> rows = rows_apart(600, 64, 300);  // more than the caller reads itself
    std::ranges::reverse(rows);                           // in order they would be merged
    const CheckedReads wanted(rows);
    submits = 0;
    ASSERT_TRUE(rig.engine->read(wanted.reads()).ok());
    wanted.expect_bytes({&held_});
    if (kind == EngineKind::pread) {
      EXPECT_EQ(submits, 0);
    } else {
      EXPECT_GE(submits, 5);
    }
  }
}

}  // namespace
}  // namespace lowtide::piece_reader_test

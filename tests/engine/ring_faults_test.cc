// A ring that is forbidden, breaks, or brings back less than was asked of it.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "lowtide/error.h"
#include "os/sys.h"
#include "support/data_file.h"
#include "support/read_rig.h"

namespace lowtide::ring_faults_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kBudgetBytes = 16 * kMiB;

std::atomic<int> faults_left;

int no_ring(unsigned, struct io_uring*) {
  return -EPERM;
}

TEST(EngineWithoutARing, RefusesUringByNameAndSaysWhy) {
  const TempFolder folder;
  const auto files = files_of({folder.write("a", pattern(10'000))});
  const sys::Fault fault(sys::table.ring_init, &no_ring);
  Budget budget(kBudgetBytes);
  try {
    (void)open_engine(files, {.engine = EngineKind::uring, .cache = CacheMode::keep}, budget);
    FAIL() << "opened";
  } catch (const IoError& error) {
    EXPECT_EQ(error.err, ENOSYS);
    EXPECT_NE(std::string(error.what()).find("io_uring_setup: Operation not permitted"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("engines auto and pread"), std::string::npos);
  }
  EXPECT_EQ(budget.free_bytes(), kBudgetBytes);
}

TEST(EngineWithoutARing, FallsBackToPreadByItself) {
  const TempFolder folder;
  const std::string held = pattern(3 * kMiB);
  const std::string path = folder.write("a", held);
  evict(path);
  const auto files = files_of({path});
  const sys::Fault fault(sys::table.ring_init, &no_ring);
  for (const CacheMode cache : {CacheMode::keep, CacheMode::drop}) {
    const EngineRig rig(files, {EngineKind::automatic, cache}, kBudgetBytes);
    const CheckedReads wanted(rows_apart(1000, 648, 3000));
    ASSERT_TRUE(rig.engine->read(wanted.reads()).ok());
    wanted.expect_bytes({&held});
    EXPECT_EQ(rig.engine->name(), "pread");
    EXPECT_NE(rig.engine->reason().find("no io_uring here (io_uring_setup: "), std::string::npos)
        << rig.engine->reason();
  }
}

int (*plain_ring_init)(unsigned, struct io_uring*);
int (*plain_submit)(struct io_uring*, unsigned);

// The probe's small ring works, the lane's does not.
int no_deep_ring(unsigned entries, struct io_uring* ring) {
  return entries > 8 ? -ENOMEM : plain_ring_init(entries, ring);
}

TEST(EngineWithARing, ReportsARingThatCannotBeMadeAfterAll) {
  if (const std::string why = why_not(EngineKind::uring); !why.empty()) GTEST_SKIP() << why;
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(kMiB));
  evict(path);
  const auto files = files_of({path});
  const sys::Fault fault(sys::table.ring_init, &no_deep_ring);
  plain_ring_init = fault.real();
  const EngineRig rig(files, {EngineKind::uring, CacheMode::keep}, kBudgetBytes);
  const CheckedReads wanted(rows_apart(100, 648, 3000));
  EXPECT_EQ(rig.engine->read(wanted.reads()).err, ENOMEM);
  EXPECT_EQ(rig.engine->read(wanted.reads()).err, ENOMEM) << "and again";
}

int submit_with_again(struct io_uring* ring, unsigned count) {
  const int left = faults_left.fetch_sub(1);
  if (left > 0 && left % 3 != 0) return left % 3 == 1 ? -EAGAIN : -EINTR;
  return plain_submit(ring, count);
}

TEST(EngineWithARing, GoesOnWhenTheKernelSaysAgain) {
  if (const std::string why = why_not(EngineKind::uring); !why.empty()) GTEST_SKIP() << why;
  const TempFolder folder;
  const std::string held = pattern(3 * kMiB + 5);
  const std::string path = folder.write("a", held);
  const sys::Fault fault(sys::table.ring_submit_and_wait, &submit_with_again);
  plain_submit = fault.real();
  for (const CacheMode cache : {CacheMode::keep, CacheMode::drop}) {
    evict(path);
    faults_left = 0;  // the probe is not what is tested
    const EngineRig rig(files_of({path}), {EngineKind::uring, cache}, kBudgetBytes);
    faults_left = 100;
    const CheckedReads wanted(rows_apart(1000, 648, 3000));
    ASSERT_TRUE(rig.engine->read(wanted.reads()).ok());
    wanted.expect_bytes({&held});
    EXPECT_LT(faults_left, 100) << "the fault was met";
  }
}

// Completions: what comes back for a read that the kernel took.
class RingCompletions : public testing::TestWithParam<CacheMode> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(EngineKind::uring); !why.empty()) GTEST_SKIP() << why;
    evict(path_);
    faults_left = 0;
  }
  [[nodiscard]] EngineRig rig() const {
    return {files_of({path_}), {EngineKind::uring, GetParam()}, kBudgetBytes};
  }
  void expect_helped(int (*result)(int)) const {
    const sys::Fault fault(sys::table.ring_result, result);
    const EngineRig rig = this->rig();
    faults_left = 200;
    const CheckedReads wanted(rows_apart(60, 10'000, 69'000));
    ASSERT_TRUE(rig.engine->read(wanted.reads()).ok());
    wanted.expect_bytes({&held_});
    EXPECT_LT(faults_left, 200) << "the fault was met";
  }

  TempFolder folder_;
  std::string held_ = pattern(4 * kMiB + 123);
  std::string path_ = folder_.write("data.bin", held_);
};

int fail_with_eio(int result) {
  return faults_left.fetch_sub(1) > 0 ? -EIO : result;
}

TEST_P(RingCompletions, ThatFailAreReportedAndForgotten) {
  const sys::Fault fault(sys::table.ring_result, &fail_with_eio);
  const EngineRig rig = this->rig();
  const CheckedReads wanted(rows_apart(60, 10'000, 69'000));
  for (const bool here : {true, false}) {
    faults_left = 1;
    WaitedSet set(wanted.reads());
    if (!here) rig.engine->submit(set);
    const Outcome outcome = here ? rig.engine->read(wanted.reads()) : set.wait();
    EXPECT_EQ(outcome.err, EIO);
    EXPECT_FALSE(outcome.ended);
    EXPECT_LT(outcome.read, 60U);
  }
  faults_left = 0;
  ASSERT_TRUE(rig.engine->read(wanted.reads()).ok()) << "the ring still works";
  wanted.expect_bytes({&held_});
}

TEST_P(RingCompletions, ThatFailNameTheirRead) {
  const sys::Fault fault(sys::table.ring_result, &fail_with_eio);
  const EngineRig rig = this->rig();
  const CheckedReads wanted({{.offset_bytes = 3 * kMiB, .size_bytes = 648, .shard = 0}});
  faults_left = 1;
  const Outcome outcome = rig.engine->read(wanted.reads());
  EXPECT_EQ(outcome.err, EIO);
  EXPECT_EQ(outcome.read, 0U);
}

int give_whole_sectors(int result) {
  return faults_left.fetch_sub(1) > 0 && result > 8192 ? result / 2 / 4096 * 4096 : result;
}
int give_odd_bytes(int result) {
  return faults_left.fetch_sub(1) > 0 && result > 100 ? result - 77 : result;
}
int refuse_direct(int result) {
  return faults_left.fetch_sub(1) > 0 ? -EINVAL : result;
}
int say_again(int result) {
  const int left = faults_left.fetch_sub(1);
  return left <= 0 ? result : left % 2 == 0 ? -EAGAIN : -EINTR;
}

TEST_P(RingCompletions, ThatAreShortAreContinued) {
  expect_helped(&give_whole_sectors);
}

TEST_P(RingCompletions, ThatEndInsideASectorAreMadeGoodByPlainReads) {
  expect_helped(&give_odd_bytes);
}

TEST_P(RingCompletions, ThatRefuseTheReadAreMadeGoodByPlainReads) {
  expect_helped(&refuse_direct);
}

TEST_P(RingCompletions, ThatSayAgainAreTriedAgain) {
  expect_helped(&say_again);
}

TEST_P(RingCompletions, ThatSayAgainForEverAreAnError) {
  const sys::Fault fault(sys::table.ring_result, +[](int) { return -EAGAIN; });
  const EngineRig rig = this->rig();
  const CheckedReads wanted(rows_apart(3, 648, kMiB));
  EXPECT_EQ(rig.engine->read(wanted.reads()).err, EAGAIN);
}

INSTANTIATE_TEST_SUITE_P(Modes, RingCompletions, testing::Values(CacheMode::keep, CacheMode::drop),
                         [](const auto& one) {
                           return one.param == CacheMode::keep ? "keep" : "drop";
                         });

}  // namespace
}  // namespace lowtide::ring_faults_test

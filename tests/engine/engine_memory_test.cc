// An allocation that fails while an engine starts its threads is an Outcome, never the end of the
// process: a thread that runs already must not be lost on the way.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "engine/engine.h"
#include "support/data_file.h"
#include "support/read_rig.h"

namespace {

thread_local int allocations_left = -1;  // of this thread, before the one that fails; below 0: none

}  // namespace

// For all of this test program. new[] and the forms without exceptions call these.
void* operator new(std::size_t size_bytes) {
  if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
  if (void* const made = std::malloc(size_bytes == 0 ? 1 : size_bytes)) return made;
  throw std::bad_alloc();
}
void operator delete(void* made) noexcept {
  std::free(made);
}
void operator delete(void* made, std::size_t) noexcept {
  std::free(made);
}

namespace lowtide::engine_memory_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

class EngineMemory : public testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    if (const std::string why = why_not(GetParam().kind); !why.empty()) GTEST_SKIP() << why;
    held_ = pattern(4 * kMiB + 123);
    path_ = folder_.write("data.bin", held_);
  }
  [[nodiscard]] EngineRig rig() const { return {files_of({path_}), GetParam(), 16 * kMiB}; }

  // Calls `action` with the nth allocation failing. False: there are fewer.
  template <class Action>
  static bool with_failure(int nth, Action action) {
    allocations_left = nth;
    action();
    return std::exchange(allocations_left, -1) < 0;
  }

  TempFolder folder_;
  std::string held_, path_;
};

TEST_P(EngineMemory, OutlivesAnyAllocationThatFailsInSubmit) {
  bool failed = true;
  for (int nth = 0; failed; ++nth) {
    const EngineRig rig = this->rig();
    if (GetParam().kind == EngineKind::memory) {
      rig.engine->expect_all();
      while (!rig.engine->prospect().held)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const CheckedReads wanted(rows_apart(64, 648, 40'000));
    WaitedSet set(wanted.reads());
    failed = with_failure(nth, [&] { rig.engine->submit(set); });
    if (const Outcome outcome = set.wait(); outcome.ok()) {
      wanted.expect_bytes({&held_});
    } else {
      EXPECT_EQ(outcome.err, ENOMEM);
    }
    EXPECT_EQ(set.times(), 1);
  }
}

TEST_P(EngineMemory, OutlivesAnyAllocationThatFailsBeforeAllIsRead) {
  bool failed = true;
  for (int nth = 0; failed; ++nth) {
    const EngineRig rig = this->rig();
    failed = with_failure(nth, [&] { rig.engine->expect_all(); });
    const CheckedReads wanted(rows_apart(64, 648, 40'000));
    ASSERT_TRUE(rig.engine->read(wanted.reads()).ok());
    wanted.expect_bytes({&held_});
  }
}

INSTANTIATE_TEST_SUITE_P(All, EngineMemory, testing::ValuesIn(every_engine()),
                         [](const auto& which) { return which.param.name(); });

}  // namespace
}  // namespace lowtide::engine_memory_test

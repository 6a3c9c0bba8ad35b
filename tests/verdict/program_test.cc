// The verdict on programs that really run. Each does one step, is looked at, and does the next: a
// step is a second of the trace, so that a busy machine changes nothing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "meter/sampler.h"
#include "os/file.h"
#include "os/temp_folder.h"
#include "support/forked.h"
#include "verdict/summary.h"
#include "verdict/verdict.h"

namespace lowtide::program_test {
namespace {

constexpr int kSteps = 60;
constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Ends {
  Ends() { EXPECT_EQ(::pipe(at), 0); }
  ~Ends() {
    for (const int end : at) ::close(end);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
  void close(int which) { ::close(std::exchange(at[which], -1)); }
  int at[2] = {-1, -1};
};

// `step` runs in a child of its own.
template <typename Step>
Trace watch(Step step, const std::vector<std::string>& files = {}) {
  ::signal(SIGPIPE, SIG_IGN);
  Ends go, done;
  const pid_t child = start_child([&] {
    go.close(1);
    done.close(0);
    char sign = 0;
    for (int i = 0; ::read(go.at[0], &sign, 1) == 1; ++i) {
      step(i);
      if (::write(done.at[1], &sign, 1) != 1) return 1;
    }
    return 0;
  });
  go.close(0);
  done.close(1);
  SamplerOptions options;
  options.pid = child;
  options.watch_files = files;
  Sampler sampler(options);
  Trace trace;
  trace.root_pid = child;
  char sign = 0;
  for (int i = 0; i < kSteps; ++i) {
    const bool stepped = ::write(go.at[1], &sign, 1) == 1 && ::read(done.at[0], &sign, 1) == 1;
    EXPECT_TRUE(stepped) << "the program ended in step " << i;
    if (!stepped) break;
    trace.readings.push_back(sampler.take(i, i + 1 == kSteps));
  }
  go.close(1);
  expect_success(child);
  trace.ending = Ending{kSteps, 0, sampler.cost_cpu_s()};
  return trace;
}

void* take(std::size_t bytes) {
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) ::_exit(2);
  return std::memset(at, 1, bytes);
}

std::string all_of(const Verdict& verdict) {
  std::string text = verdict.headline + "\n";
  for (const auto* part : {&verdict.evidence, &verdict.unknown, &verdict.advice}) {
    for (const std::string& sentence : *part) text += sentence + "\n";
  }
  return text;
}

// The page cache of other programs may grow meanwhile: then it is not flat, but never a leak.
void expect_no_leak(const Trace& trace) {
  const Verdict verdict = judge(trace);
  EXPECT_NE(verdict.kind, VerdictKind::heap_leak) << all_of(verdict);
  EXPECT_NE(verdict.kind, VerdictKind::too_short) << all_of(verdict);
}

// A process that stays until it is ended, or its parent ends.
pid_t start_worker() {
  const pid_t parent = ::getpid(), worker = ::fork();
  if (worker != 0) return worker;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  while (::getppid() == parent) ::pause();
  ::_exit(0);
}

void end_worker(pid_t worker) {
  ::kill(worker, SIGKILL);
  ::waitpid(worker, nullptr, 0);
}

class ProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!children_work()) GTEST_SKIP() << "the sanitizer does not support this fork";
  }
  // Pages of a file on tmpfs are shared memory.
  [[nodiscard]] bool on_tmpfs() const {
    struct statfs system {};
    return ::statfs(folder_.path().c_str(), &system) == 0 && system.f_type == 0x01021994;
  }
  TempFolder folder_;
};

TEST_F(ProgramTest, ThatLeaksSlowlyIsALeak) {
  const Verdict verdict = judge(watch([](int) { take(kMiB / 4); }));
  EXPECT_EQ(verdict.kind, VerdictKind::heap_leak) << all_of(verdict);
  EXPECT_TRUE(verdict.headline.starts_with("The heap grows by 0.25 +- 0.0")) << all_of(verdict);
}

TEST_F(ProgramTest, ThatMapsAndReadsAFileDoesNotLeak) {
  if (on_tmpfs()) GTEST_SKIP() << "tmpfs: its pages are no file's";
  const std::size_t part = kMiB, size = part * kSteps;
  const std::string path = folder_.write("train set.bin", std::string(size, 'x'));
  const File file(path);
  void* const map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.fd(), 0);
  ASSERT_NE(map, MAP_FAILED);
  const Trace trace = watch([&](int step) {
    const auto* const from =
        static_cast<const volatile char*>(map) + static_cast<std::size_t>(step) * part;
    for (std::size_t at = 0; at < part; at += 4096) (void)from[at];
  });
  ::munmap(map, size);
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::mapped_files) << all_of(verdict);
  EXPECT_NE(all_of(verdict).find("most of it is " + path), std::string::npos) << all_of(verdict);
  EXPECT_GE(peak_of(trace).file.value_or(0), size);
}

TEST_F(ProgramTest, ThatOnlyFillsThePageCacheDoesNotLeak) {
  if (on_tmpfs()) GTEST_SKIP() << "tmpfs: its pages are no file's";
  const std::string path = folder_.write("log", "");
  const Trace trace = watch(
      [&](int) {
        std::ofstream out(path, std::ios::app | std::ios::binary);
        out << std::string(kMiB, 'x');
      },
      {path});
  if (!peak_of(trace).page_cache) GTEST_SKIP() << "this kernel does not tell the page cache";
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::page_cache) << all_of(verdict);
}

TEST_F(ProgramTest, ThatWarmsUpDoesNotLeak) {
  expect_no_leak(watch([](int step) {
    if (step < kSteps / 3) take(2 * kMiB);
  }));
}

TEST_F(ProgramTest, ThatWorksPeriodicallyDoesNotLeak) {
  void* held = nullptr;
  expect_no_leak(watch([&](int step) {
    if (step % 7 == 0) held = take(32 * kMiB);
    if (step % 7 == 4) ::munmap(held, 32 * kMiB);
  }));
}

TEST_F(ProgramTest, ThatCollectsGarbageNowAndThenDoesNotLeak) {
  std::vector<void*> garbage;
  expect_no_leak(watch([&](int step) {
    garbage.push_back(take(2 * kMiB));
    if (step % 8 != 7) return;
    for (void* const at : garbage) ::munmap(at, 2 * kMiB);
    garbage.clear();
  }));
}

TEST_F(ProgramTest, ThatForksAWorkerForEachTaskDoesNotLeak) {
  std::vector<pid_t> workers;
  expect_no_leak(watch([&](int step) {
    if (step == 0) take(24 * kMiB);
    for (const pid_t worker : workers) end_worker(worker);
    workers.clear();
    for (int i = 0; i < step * 7 % 5; ++i) workers.push_back(start_worker());
  }));
}

// Each counts the heap of its parent again.
TEST_F(ProgramTest, ThatKeepsMoreAndMoreWorkersCountsSharedPagesTwice) {
  const Verdict verdict = judge(watch([](int step) {
    if (step == 0) take(24 * kMiB);
    if (step % 6 == 0) (void)start_worker();
  }));
  EXPECT_EQ(verdict.kind, VerdictKind::shared_twice) << all_of(verdict);
}

}  // namespace
}  // namespace lowtide::program_test

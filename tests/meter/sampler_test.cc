#include "meter/sampler.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <string>
#include <string_view>

#include "lowtide/error.h"
#include "meter/fake_proc.h"
#include "os/sys.h"
#include "support/forked.h"

namespace lowtide::sampler_test {
namespace {

constexpr int kPid = 2000000000;
constexpr std::uint64_t kMiB = 1ULL << 20;

// Each question about the time takes as much of it as the test says.
std::uint64_t clock_ns = 0, step_ns = 0;
std::uint64_t ticking() {
  return clock_ns += step_ns;
}

struct Counted {
  int readings = 0, files = 0, pss = 0, groups = 0;
  double cost_s = 0;
};

// A run of so many seconds, at so many seconds of CPU for each part of a reading.
Counted run(const SystemRoot& root, double for_s, double part_s, double interval_s = 0) {
  step_ns = static_cast<std::uint64_t>(part_s * 1e9);
  SamplerOptions options;
  options.root = root;
  options.pid = kPid;
  options.interval_s = interval_s;
  options.cpu_ns = ticking;
  Sampler sampler(options);
  Counted counted;
  for (double now = 0; now < for_s; now += std::max(sampler.wait_s(now), 1e-4)) {
    const Reading reading = sampler.take(now);
    ++counted.readings;
    counted.files += reading.files.has_value();
    counted.groups += reading.group.has_value();
    counted.pss += reading.processes.at(0).pss.value.has_value();
  }
  counted.cost_s = sampler.cost_cpu_s();
  return counted;
}

class SamplerTest : public testing::Test {
 protected:
  SamplerTest() {
    proc_.process(kPid, 1, 77, "job");
    proc_.file(kPid, "smaps", "");
    proc_.file(kPid, "smaps_rollup", "Rss: 60 kB\nPss: 50 kB\n");
  }
  [[nodiscard]] Sampler sampler() const {
    SamplerOptions options;
    options.root = proc_.root();
    options.pid = kPid;
    return Sampler(options);
  }
  FakeProc proc_;
};

// Its stat as it is between exit_mm() and the end: PF_EXITING, and no memory in its status.
void begin_to_end(const FakeProc& proc, int threads) {
  proc.file(kPid, "stat",
            std::to_string(kPid) + " (job) R 1 1 1 0 -1 4 11 0 22 0 0 0 0 0 20 0 " +
                std::to_string(threads) + " 0 77 1000 200\n");
  proc.file(kPid, "status", "Name:\tjob\n");
}

TEST_F(SamplerTest, LeavesOutAProcessThatIsEnding) {
  for (const int threads : {1, 3}) {
    proc_.process(kPid, 1, 77, "job");
    Sampler sampler = this->sampler();
    EXPECT_EQ(sampler.take(0).processes.size(), 1u);
    begin_to_end(proc_, threads);
    const Reading last = sampler.take(1, true);
    EXPECT_TRUE(last.processes.empty()) << threads;
    EXPECT_FALSE(last.files) << threads;
  }
}

TEST_F(SamplerTest, KeepsAProcessWhoseFirstThreadEnded) {
  Sampler sampler = this->sampler();
  begin_to_end(proc_, 2);
  proc_.file(kPid, "task/2000000001/status", "Name:\tjob\nVmRSS:\t60 kB\nRssAnon:\t10 kB\n");
  const Reading reading = sampler.take(1);
  ASSERT_EQ(reading.processes.size(), 1u);
  EXPECT_EQ(reading.processes[0].anon.value, 10u * 1024);
}

TEST_F(SamplerTest, LooksAtWatchedFilesOnceMoreWhenAllHaveEnded) {
  const std::string path = proc_.folder().write("data.bin", std::string(8192, 'x'));
  SamplerOptions options;
  options.root = proc_.root();
  options.pid = kPid;
  options.watch_files = {path};
  Sampler sampler(options);
  (void)sampler.take(0);
  proc_.end(kPid);
  EXPECT_FALSE(sampler.take(1).files);
  const Reading last = sampler.take(2, true);
  EXPECT_TRUE(last.processes.empty());
  ASSERT_TRUE(last.files);
  ASSERT_EQ(last.files->size(), 1u);
  EXPECT_EQ(last.files->front().path, path);
  EXPECT_EQ(last.files->front().mapped.value, 0u);
}

TEST_F(SamplerTest, AnIntervalThatWasAskedForLooksAtTheFilesWhateverThatCosts) {
  const Counted chosen = run(proc_.root(), 5, 0.02), asked = run(proc_.root(), 5, 0.02, 0.05);
  EXPECT_LE(chosen.files, 2);
  EXPECT_GE(asked.files, 10);  // every fifth of the time since the start
  EXPECT_LE(asked.files, 30);
}

TEST_F(SamplerTest, TellsEveryFigureOfAProcess) {
  const Reading reading = sampler().take(0.5);
  ASSERT_EQ(reading.processes.size(), 1u);
  const ProcessReading& process = reading.processes[0];
  EXPECT_EQ(reading.seconds, 0.5);
  EXPECT_EQ(process.pid, kPid);
  EXPECT_EQ(process.parent, 1);
  EXPECT_EQ(process.start_ticks, 77u);
  EXPECT_EQ(process.name, "job");
  EXPECT_EQ(process.anon.value, 10u * 1024);
  EXPECT_EQ(process.file.value, 20u * 1024);
  EXPECT_EQ(process.shmem.value, 30u * 1024);
  EXPECT_EQ(process.page_tables.value, 4u * 1024);
  EXPECT_EQ(process.swap.value, 0u);
  EXPECT_EQ(process.minor_faults.value, 11u);
  EXPECT_EQ(process.major_faults.value, 22u);
  EXPECT_EQ(process.asked_bytes.value, 5u);
  EXPECT_EQ(process.disk_bytes.value, 6u);
  EXPECT_EQ(process.threads.value, 1u);
  EXPECT_FALSE(process.rss_alone);
  EXPECT_TRUE(reading.files && reading.group);
}

TEST_F(SamplerTest, TellsRssAloneOnAKernelThatDoesNotSplitIt) {
  proc_.file(kPid, "status", "VmRSS:\t60 kB\n");
  const Reading reading = sampler().take(0);
  EXPECT_EQ(reading.processes.at(0).rss_alone, 60u * 1024);
  EXPECT_EQ(reading.processes.at(0).anon.why, "this kernel does not report it");
}

TEST_F(SamplerTest, SeesAShortProgramSeveralTimes) {
  EXPECT_GE(run(proc_.root(), 0.010, 50e-6).readings, 5);
}

TEST_F(SamplerTest, SeesTheFilesOfAProgramOfAFewSecondsAfterItsStart) {
  EXPECT_GE(run(proc_.root(), 3, 4e-3).files, 2);  // each reading: here all parts are as dear
}

TEST_F(SamplerTest, StaysUnderAPercentOfACore) {
  for (const double part_s : {20e-6, 200e-6, 2e-3, 20e-3}) {
    const Counted counted = run(proc_.root(), 100, part_s);
    EXPECT_LE(counted.cost_s, 0.023 + 0.0075 * 100 + 5 * part_s) << part_s;
    EXPECT_GE(counted.readings, 5) << part_s;
    EXPECT_GE(counted.files, 1) << part_s;
    EXPECT_GE(counted.groups, 1) << part_s;
  }
}

TEST_F(SamplerTest, AsksForWhatIsDearMoreRarely) {
  const Counted counted = run(proc_.root(), 100, 50e-6);
  EXPECT_GT(counted.readings, 900);
  EXPECT_LT(counted.files, 60);
  EXPECT_GT(counted.files, 10);
  EXPECT_LT(counted.pss, counted.readings / 5);
  EXPECT_GT(counted.pss, counted.files);
}

TEST_F(SamplerTest, KeepsTheIntervalThatItIsGiven) {
  const Counted counted = run(proc_.root(), 10, 20e-3, 0.5);
  EXPECT_EQ(counted.readings, 20);
}

TEST_F(SamplerTest, AsksForEverythingInTheLastReading) {
  Sampler sampler = this->sampler();
  EXPECT_TRUE(sampler.take(10).files);
  const Reading between = sampler.take(10.0001);
  EXPECT_FALSE(between.files);
  EXPECT_EQ(between.processes.at(0).anon.value, 10u * 1024);
  EXPECT_TRUE(sampler.take(10.0002, true).files);
}

TEST_F(SamplerTest, TellsOfFilesByNameInTheLastReadingWhateverThatCosts) {
  step_ns = 1'000'000'000;
  for (const bool named : {true, false}) {
    SamplerOptions options;
    options.root = proc_.root();
    options.pid = kPid;
    options.cpu_ns = ticking;
    if (named) options.watch_files = {"/proc/self/exe"};
    Sampler sampler(options);
    (void)sampler.take(0);
    EXPECT_FALSE(sampler.take(0.1).files);
    EXPECT_EQ(sampler.take(0.2, true).files.has_value(), named);
  }
}

TEST_F(SamplerTest, LeavesChildrenOutWhereItShould) {
  proc_.process(kPid + 1, kPid);
  EXPECT_EQ(sampler().take(0).processes.size(), 2u);
  SamplerOptions options;
  options.root = proc_.root();
  options.pid = kPid;
  options.children = false;
  Sampler alone(options);
  EXPECT_EQ(alone.take(0).processes.size(), 1u);
}

TEST_F(SamplerTest, EndsWithTheTree) {
  Sampler sampler = this->sampler();
  EXPECT_FALSE(sampler.take(0).processes.empty());
  proc_.end(kPid);
  EXPECT_TRUE(sampler.take(1).processes.empty());
  EXPECT_TRUE(sampler.ended());
  EXPECT_THROW((void)this->sampler(), IoError);
}

TEST(Sampler, TellsWhyThereIsNoPss) {
  static int (*real)(const char*, int) = sys::table.open;
  const sys::Fault fault(
      sys::table.open, +[](const char* path, int flags) {
        if (std::string_view(path).find("/smaps") == std::string_view::npos)
          return real(path, flags);
        errno = ENOENT;
        return -1;
      });
  SamplerOptions options;
  Sampler sampler(options);
  std::set<std::string> reasons;
  for (int i = 0; i < 100; ++i) reasons.insert(sampler.take(i).processes.at(0).pss.why);
  EXPECT_TRUE(reasons.contains("this kernel has no /proc/PID/smaps_rollup"));
  EXPECT_TRUE(reasons.contains("not asked now"));
}

TEST(Sampler, SeesWhatAChildTakes) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not support this fork";
  int ready[2], go[2];
  ASSERT_EQ(::pipe(ready) + ::pipe(go), 0);
  const pid_t child = start_child([&] {
    char sign = 0;
    if (::read(go[0], &sign, 1) != 1) return 1;
    constexpr std::size_t kSize = 64 * kMiB;
    void* const at =
        ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 2;
    std::memset(at, 1, kSize);
    return ::write(ready[1], &sign, 1) == 1 && ::read(go[0], &sign, 1) == 1 ? 0 : 3;
  });
  SamplerOptions options;
  options.pid = child;
  Sampler sampler(options);
  const Reading before = sampler.take(0);
  char sign = 0;
  ASSERT_EQ(::write(go[1], &sign, 1), 1);
  ASSERT_EQ(::read(ready[0], &sign, 1), 1);
  const Reading after = sampler.take(1);
  ASSERT_EQ(::write(go[1], &sign, 1), 1);
  expect_success(child);
  for (const int end : {ready[0], ready[1], go[0], go[1]}) ::close(end);
  ASSERT_EQ(before.processes.size(), 1u);
  ASSERT_EQ(after.processes.size(), 1u);
  const std::uint64_t grown =
      after.processes[0].anon.value.value_or(0) - before.processes[0].anon.value.value_or(0);
  EXPECT_GE(grown, 63 * kMiB);
  EXPECT_LE(grown, 66 * kMiB);
}

}  // namespace
}  // namespace lowtide::sampler_test

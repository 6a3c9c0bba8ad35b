#include "meter/watch.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lowtide/command/run_command.h"
#include "lowtide/error.h"
#include "os/temp_folder.h"
#include "support/forked.h"

namespace lowtide::watch_test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename Condition>
bool within_a_minute(Condition condition) {
  for (const auto deadline = ::time(nullptr) + 60; ::time(nullptr) < deadline; ::usleep(2000)) {
    if (condition()) return true;
  }
  return false;
}

// Readings at any cost: where one is dear, as under a sanitizer, few are affordable.
Watch::Options often() {
  Watch::Options options;
  options.sampler.interval_s = 0.01;
  return options;
}

TEST(Watch, HasAReadingFromItsFirstMomentAndMoreAsItRuns) {
  Watch watch(often());
  ASSERT_GE(watch.trace().readings.size(), 1u);
  EXPECT_EQ(watch.trace().readings[0].processes.at(0).pid, ::getpid());
  EXPECT_TRUE(within_a_minute([&] { return watch.trace().readings.size() > 10; }));
  EXPECT_FALSE(watch.trace().ending);
  watch.mark("step 1");
  watch.stop(7);
  watch.mark("too late");
  watch.stop(8);
  const Trace trace = watch.trace();
  ASSERT_TRUE(trace.ending);
  EXPECT_EQ(trace.ending->exit_code, 7);
  EXPECT_GT(trace.ending->cost_cpu_seconds, 0);
  EXPECT_GE(trace.ending->seconds, trace.readings.back().seconds);
  ASSERT_EQ(trace.marks.size(), 1u);
  EXPECT_EQ(trace.marks[0].text, "step 1");
  EXPECT_EQ(trace.root_pid, ::getpid());
  EXPECT_TRUE(trace.machine.starts_with("Linux"));
  EXPECT_TRUE(trace.readings.front().files);
}

TEST(Watch, WritesTheTraceThatItHolds) {
  const TempFolder folder;
  Watch::Options options = often();
  options.trace_path = folder / "a.trace";
  options.command = {"python", "a b.py"};
  Watch watch(options);
  watch.mark("epoch 1");
  EXPECT_TRUE(within_a_minute([&] { return watch.trace().readings.size() > 5; }));
  // Readable while it runs, without an ending.
  EXPECT_FALSE(parse_trace(text_of(options.trace_path), "a").ending);
  watch.stop(0);
  const Trace written = parse_trace(text_of(options.trace_path), options.trace_path);
  const Trace held = watch.trace();
  EXPECT_EQ(written.command, options.command);
  EXPECT_EQ(written.readings.size(), held.readings.size());
  EXPECT_EQ(written.marks.size(), 1u);
  EXPECT_EQ(written.root_pid, ::getpid());
  ASSERT_TRUE(written.ending);
  EXPECT_EQ(written.ending->exit_code, 0);
  EXPECT_FALSE(written.cut);
}

TEST(Watch, LeavesATraceBehindWhenItIsKilled) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not support this fork";
  const TempFolder folder;
  const std::string path = folder / "a.trace";
  const pid_t profiler = start_child([&] {
    Watch::Options options = often();
    options.trace_path = path;
    const Watch watch(options);
    for (;;) ::pause();
    return 0;
  });
  EXPECT_TRUE(within_a_minute([&] {
    const std::string text = text_of(path);
    return !text.empty() && parse_trace(text, path).readings.size() > 5;
  }));
  ::kill(profiler, SIGKILL);
  ::waitpid(profiler, nullptr, 0);
  const Trace trace = parse_trace(text_of(path), path);
  EXPECT_GT(trace.readings.size(), 5u);
  EXPECT_EQ(trace.root_pid, profiler);
  EXPECT_FALSE(trace.ending);
}

TEST(Watch, SaysThatTheTraceCannotBeWritten) {
  const TempFolder folder;
  Watch::Options options;
  options.trace_path = folder / "none/a.trace";
  EXPECT_THROW(Watch{options}, IoError);
  options.trace_path = "/dev/full";
  EXPECT_THROW(Watch{options}, IoError);
  options = {};
  options.sampler.pid = 2000000000;
  EXPECT_THROW(Watch{options}, IoError);
}

TEST(Watch, SeesACommandThatEndsAtOnce) {
  std::optional<Watch> watch;
  const CommandEnd end = run_command({{"true"}, {}}, [&](int pid) {
    Watch::Options options;
    options.sampler.pid = pid;
    watch.emplace(options);
  });
  watch->stop(end.exit_code);
  const Trace trace = watch->trace();
  EXPECT_GE(trace.readings.size(), 1u);
  EXPECT_TRUE(trace.readings[0].processes.at(0).anon.value);
  EXPECT_EQ(trace.ending->exit_code, 0);
}

TEST(Watch, FollowsACommandAndItsChildren) {
  const TempFolder folder;
  const std::string stop = folder / "stop";
  std::optional<Watch> watch;
  std::thread look;
  const CommandEnd end =
      run_command({{"sh", "-c", "(while [ ! -e '" + stop + "' ]; do sleep 0.05; done) & wait"}, {}},
                  [&](int pid) {
                    Watch::Options options;
                    options.sampler.pid = pid;
                    watch.emplace(options);
                    look = std::thread([&] {
                      EXPECT_TRUE(within_a_minute([&] {
                        const Trace trace = watch->trace();
                        return trace.readings.back().processes.size() >= 2;
                      }));
                      folder.write("stop", "");
                    });
                  });
  look.join();
  watch->stop(end.exit_code);
  const Trace trace = watch->trace();
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(trace.readings.back().processes.at(0).name, "sh");
  for (const Reading& reading : trace.readings) EXPECT_FALSE(reading.processes.empty());
}

TEST(Watch, ThinsMarksThatComeTooOften) {
  Watch watch({});
  for (int i = 0; i < 100000; ++i) watch.mark("step");
  EXPECT_GE(watch.trace().marks.size(), 256u);
  EXPECT_LE(watch.trace().marks.size(), 20000u);
}

}  // namespace
}  // namespace lowtide::watch_test

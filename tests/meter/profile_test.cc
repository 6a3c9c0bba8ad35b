#include "lowtide/profile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/step_hook.h"
#include "lowtide/error.h"
#include "meter/trace.h"
#include "os/temp_folder.h"
#include "support/forked.h"

namespace lowtide::profile_test {
namespace {

Trace trace_at(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse_trace(text, path);
}

ProfileOptions traced(const TempFolder& folder, const std::string& name = "a.trace") {
  ProfileOptions options;
  options.trace_path = folder / name;
  return options;
}

std::vector<std::string> marks_at(const std::string& path) {
  std::vector<std::string> texts;
  for (const Mark& mark : trace_at(path).marks) texts.push_back(mark.text);
  return texts;
}

TEST(Profile, RunsUntilItIsStopped) {
  const TempFolder folder;
  EXPECT_FALSE(profile_running());
  mark_profile("nobody hears it");
  Profile profile(traced(folder));
  EXPECT_TRUE(profile_running());
  mark_profile("epoch 1");
  profile.mark("step 2");
  profile.stop(3);
  EXPECT_GE(profile.recording().readings(), 1u);
  EXPECT_GT(profile.recording().cost(), 0);
  EXPECT_GT(profile.recording().peak().anon.value_or(0), 0u);
  EXPECT_FALSE(profile_running());
  mark_profile("too late");
  profile.mark("too late");
  profile.stop(4);
  EXPECT_EQ(marks_at(folder / "a.trace"), (std::vector<std::string>{"epoch 1", "step 2"}));
  EXPECT_EQ(trace_at(folder / "a.trace").ending->exit_code, 3);
}

TEST(Profile, HearsTheStepsOfALoader) {
  const TempFolder folder;
  report_step(2, 9);
  Profile profile(traced(folder));
  report_step(3, 1);
  report_step(3, 2);
  report_step(4, 1);
  profile.stop();
  report_step(5, 1);
  EXPECT_EQ(marks_at(folder / "a.trace"), (std::vector<std::string>{"epoch 3", "epoch 4"}));
}

TEST(Profile, StopsWhenItIsDestroyedOrAnotherTakesItsPlace) {
  const TempFolder folder;
  {
    Profile profile(traced(folder));
    Profile moved(std::move(profile));
    moved.mark("x");
    moved = Profile(traced(folder, "b.trace"));
    EXPECT_TRUE(profile_running());
    EXPECT_TRUE(trace_at(folder / "a.trace").ending);
    EXPECT_FALSE(trace_at(folder / "b.trace").ending);
  }
  EXPECT_FALSE(profile_running());
  EXPECT_TRUE(trace_at(folder / "b.trace").ending);
}

TEST(Profile, OfAnotherProcessDoesNotHearOurMarks) {
  const TempFolder folder;
  ProfileOptions options = traced(folder);
  options.pid = ::getppid();
  options.children = false;
  Profile profile(options);
  EXPECT_FALSE(profile_running());
  mark_profile("ours");
  profile.stop();
  EXPECT_TRUE(marks_at(folder / "a.trace").empty());
}

TEST(Profile, TellsEachReadingAndThatAllHaveEnded) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not support this fork";
  const TempFolder folder;
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  const pid_t child = start_child([&] {
    ::close(go[1]);
    char sign = 0;
    return ::read(go[0], &sign, 1) == 0 ? 0 : 1;
  });
  ::close(go[0]);
  std::atomic<int> told{0};
  ProfileOptions options;
  options.pid = child;
  options.interval_s = 0.01;
  options.watch_files = {folder.write("watched", std::string(4096, 'x'))};
  options.on_reading = [&](const Moment& now) {
    if (now.processes == 1 && now.level.rss) ++told;
  };
  Profile profile(options);
  EXPECT_EQ(told, 1);  // before the constructor returned
  EXPECT_FALSE(profile.ended());
  while (told < 3) std::this_thread::yield();
  ::close(go[1]);
  expect_success(child);
  while (!profile.ended()) std::this_thread::yield();
  profile.stop();
  const Recording recording = profile.recording();
  EXPECT_FALSE(recording.exit_code());
  EXPECT_FALSE(recording.command().empty());
  EXPECT_EQ(recording.page_cache_of(options.watch_files[0]).size.value_or(4096), 4096u);
  EXPECT_FALSE(recording.page_cache_of("/another").peak);
}

TEST(Profile, MayBeOneOfTwo) {
  const TempFolder folder;
  Profile outer(traced(folder));
  {
    const Profile inner(traced(folder, "b.trace"));
    mark_profile("both");
  }
  EXPECT_TRUE(profile_running());
  mark_profile("one");
  outer.stop();
  EXPECT_EQ(marks_at(folder / "a.trace"), (std::vector<std::string>{"both", "one"}));
  EXPECT_EQ(marks_at(folder / "b.trace"), (std::vector<std::string>{"both"}));
}

TEST(Profile, RefusesWhatCannotBe) {
  ProfileOptions options;
  options.pid = -1;
  EXPECT_THROW(Profile{options}, std::invalid_argument);
  options.pid = 2000000000;
  EXPECT_THROW(Profile{options}, IoError);
  options.pid = 0;
  options.interval_s = -1;
  EXPECT_THROW(Profile{options}, std::invalid_argument);
  options.interval_s = 0;
  options.trace_path = "/dev/full";
  EXPECT_THROW(Profile{options}, IoError);
  EXPECT_FALSE(profile_running());
}

TEST(Profile, IsMarkedAndStoppedByManyThreads) {
  const TempFolder folder;
  Profile profile(traced(folder));
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      while (!go) std::this_thread::yield();
      for (int step = 0; step < 50; ++step) mark_profile("step");
      (void)profile.recording();
      profile.stop(i);
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  const Trace trace = trace_at(folder / "a.trace");
  EXPECT_GE(trace.marks.size(), 50u);
  EXPECT_FALSE(trace.cut);
}

TEST(Profile, IsSilentInAForkedChildAndMayBeginAnewThere) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not support this fork";
  const TempFolder folder;
  for (int round = 0; round < 20; ++round) {  // a lock may be held at the moment of the fork
    Profile profile(traced(folder));
    const pid_t child = start_child([&] {
      if (profile_running()) return 1;
      mark_profile("child");
      profile.mark("child");
      profile.stop(1);
      if (profile.recording().readings() != 0) return 4;
      Profile own(traced(folder, "b.trace"));
      if (!profile_running()) return 2;
      mark_profile("own");
      own.stop();
      profile = std::move(own);
      return marks_at(folder / "b.trace") == std::vector<std::string>{"own"} ? 0 : 3;
    });
    expect_success(child);
    EXPECT_TRUE(profile_running());
    profile.stop(0);
    EXPECT_TRUE(marks_at(folder / "a.trace").empty());
    EXPECT_EQ(trace_at(folder / "a.trace").ending->exit_code, 0);
  }
}

}  // namespace
}  // namespace lowtide::profile_test

#include "job/plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "job/shuffled.h"
#include "lowtide/bytes.h"
#include "lowtide/error.h"
#include "lowtide/jobs.h"
#include "os/sys.h"
#include "support/forked.h"
#include "support/thrown.h"

namespace lowtide::plan_test {
namespace {

using Names = std::set<std::string>;

class PlanTest : public testing::Test {
 protected:
  PlanTest() { write_source(1); }
  void write_source(std::uint64_t seed) {
    folder_.write("a.npy", npy_text("|u1", {12'000, 500}, pattern(6'000'000, seed)));
  }
  [[nodiscard]] Plan shuffle(const std::string& to, std::uint64_t shards = 1,
                             bool overwrite = false) const {
    return plan_shuffle(
        {.paths = {folder_ / "a.npy"}}, folder_ / to,
        {.seed = 1, .shards = shards, .memory_bytes = 1 << 20, .overwrite = overwrite});
  }
  [[nodiscard]] static std::string expected() {
    return shuffled(pattern(6'000'000), 500, 12'000, 1);
  }

  TempFolder folder_;
};

void run_stage(const Plan& plan, std::size_t stage) {
  for (std::size_t task = 0; task < plan.tasks(stage); ++task) plan.run_task(stage, task);
}

TEST_F(PlanTest, RefusesADestinationThatExists) {
  folder_.write("b.npy", "mine");
  EXPECT_EQ(caught<IoError>([&] { (void)shuffle("b.npy"); })->err, EEXIST);
  folder_.write("c/x", "mine");
  EXPECT_EQ(caught<IoError>([&] { (void)shuffle("c", 2); })->err, EEXIST);
  EXPECT_EQ(caught<IoError>([&] { (void)shuffle("c", 2, true); })->err, ENOTEMPTY);
  std::filesystem::create_directory(folder_ / "d.npy");
  EXPECT_EQ(caught<IoError>([&] { (void)shuffle("d.npy"); })->err, EISDIR);
  EXPECT_EQ(caught<IoError>([&] { (void)shuffle("b.npy", 2, true); })->err, ENOTDIR);
  EXPECT_EQ(caught<IoError>([&] { (void)shuffle("no/b.npy"); })->err, ENOENT);
  EXPECT_EQ(caught<IoError>([&] { (void)shuffle("a.npy", 1, true); })->err, EINVAL);
  EXPECT_EQ(names_in(folder_.path()), (Names{"a.npy", "b.npy", "c", "d.npy"}));
}

TEST_F(PlanTest, RecognisesWhatItMadeBefore) {
  for (const auto& wanted : {std::pair("b.npy", 1), std::pair("c", 3)}) {
    const char* const to = wanted.first;  // clang 14 captures no structured binding
    const int shards = wanted.second;
    shuffle(to, shards).run();
    const Plan again = shuffle(to, shards);
    if (!again.made()) GTEST_SKIP() << "no extended attributes here";
    EXPECT_TRUE(again.done(0, 0) && again.ready(1) && again.done(1, 0));
    const std::string file = folder_ / (shards == 1 ? "b.npy" : "c/part-00001-of-00003.npy");
    const auto before = std::filesystem::last_write_time(file);
    again.run_task(0, 0);
    again.run();
    EXPECT_EQ(std::filesystem::last_write_time(file), before);
    EXPECT_EQ(names_in(folder_.path()),
              shards == 1 ? (Names{"a.npy", "b.npy"}) : (Names{"a.npy", "b.npy", "c"}));
    EXPECT_FALSE(plan_shuffle({.paths = {folder_ / "a.npy"}}, folder_ / to,
                              {.seed = 2, .shards = again.tasks(1), .overwrite = true})
                     .made());
    shuffle(to, shards, true).run();  // asked for, so it is made again
    EXPECT_NE(std::filesystem::last_write_time(file), before);
    // As long as before, with other bytes: not ours any more.
    std::fstream(file, std::ios::in | std::ios::out) << "x";
    EXPECT_FALSE(again.made());
    EXPECT_EQ(caught<IoError>([&] { (void)shuffle(to, shards); })->err, EEXIST);
  }
}

TEST_F(PlanTest, RefusesItsOwnResultWhereNothingSaysThatItIs) {
  const sys::Fault none(
      sys::table.fsetxattr, +[](int, const char*, const void*, std::size_t, int) {
        errno = EOPNOTSUPP;
        return -1;
      });
  shuffle("b.npy").run();
  EXPECT_EQ(array_bytes(folder_ / "b.npy"), expected());
  EXPECT_EQ(caught<IoError>([&] { (void)shuffle("b.npy"); })->err, EEXIST);
}

// Somebody else wrote there while the job ran: nothing of theirs is lost.
TEST_F(PlanTest, RefusesADestinationThatAppearsMeanwhile) {
  const Plan file = shuffle("b.npy");
  run_stage(file, 0);
  folder_.write("b.npy", "theirs");
  EXPECT_EQ(caught<IoError>([&] { run_stage(file, 1); })->err, EEXIST);
  EXPECT_EQ(file_text(folder_ / "b.npy"), "theirs");
  file.clean();
  const Plan parts = shuffle("c", 2);
  run_stage(parts, 0);
  folder_.write("c/theirs", "x");
  EXPECT_EQ(caught<IoError>([&] { run_stage(parts, 1); })->err, EEXIST);
  parts.clean();
  EXPECT_EQ(names_in(folder_.path()), (Names{"a.npy", "b.npy", "c"}));
}

TEST_F(PlanTest, ReplacesAFileOrAFolderIfAsked) {
  folder_.write("b.npy", "old");
  shuffle("b.npy", 1, true).run();
  EXPECT_TRUE(array_bytes(folder_ / "b.npy") == expected());
  folder_.write("c/part-00000-of-00001.npy", "old");
  const Plan plan = shuffle("c", 2, true);
  EXPECT_FALSE(plan.done(1, 0));
  plan.run();
  EXPECT_TRUE(plan.done(1, 0));
  EXPECT_TRUE(array_bytes(folder_ / "c") == expected());
  EXPECT_EQ(names_in(folder_.path()), (Names{"a.npy", "b.npy", "c"}));
}

TEST_F(PlanTest, RefusesASourceThatChanged) {
  const Plan plan = shuffle("b.npy");
  run_stage(plan, 0);
  write_source(2);
  EXPECT_EQ(caught<IoError>([&] { run_stage(plan, 1); })->err, ESTALE);
  EXPECT_EQ(caught<IoError>([&] { plan.run(); })->err, ESTALE);
  EXPECT_EQ(names_in(folder_.path()), Names{"a.npy"});
}

TEST_F(PlanTest, SaysWhatAStageWaitsFor) {
  const Plan plan = shuffle("b.npy");
  ASSERT_GT(plan.tasks(0), 1u);
  plan.run_task(0, 0);
  EXPECT_FALSE(plan.ready(1));
  const auto error = caught<IoError>([&] { plan.run_task(1, 0); });
  EXPECT_EQ(error->err, ENOENT);
  EXPECT_EQ(error->path, plan.outputs(0, 1).at(0));
  EXPECT_THROW((void)plan.tasks(2), std::out_of_range);
  EXPECT_THROW(plan.run_task(0, plan.tasks(0)), std::out_of_range);
  plan.clean();
  EXPECT_EQ(names_in(folder_.path()), Names{"a.npy"});
}

TEST_F(PlanTest, RefusesADamagedRunFile) {
  const Plan plan = shuffle("b.npy");
  run_stage(plan, 0);
  const std::string run = plan.outputs(0, 1).at(0);
  const std::string whole = file_text(run);
  const auto said = [&](const std::string& text) {
    std::ofstream(run, std::ios::binary) << text;
    return thrown<FormatError>([&] { plan.run_task(1, 0); });
  };
  EXPECT_NE(said("short").find("ends early"), std::string::npos);
  EXPECT_NE(said(whole.substr(0, whole.size() - 8)).find("damaged"), std::string::npos);
  EXPECT_NE(said(whole.substr(8)).find("damaged"), std::string::npos);
  EXPECT_NE(said(file_text(plan.outputs(0, 0).at(0)) + whole).find("damaged"), std::string::npos);
  std::ofstream(run, std::ios::binary) << whole;
  plan.run_task(1, 0);
  EXPECT_TRUE(array_bytes(folder_ / "b.npy") == expected());
}

TEST_F(PlanTest, GoesOnAfterACrash) {
  const Plan plan = shuffle("b", 3);
  run_stage(plan, 0);
  plan.run_task(1, 1);
  const Plan again = shuffle("b", 3);  // the same call in another process
  EXPECT_EQ(again.text(), plan.text());
  EXPECT_TRUE(again.ready(1));
  EXPECT_TRUE(again.done(1, 1));
  EXPECT_FALSE(again.done(1, 0));
  std::uint64_t least = ~std::uint64_t{0};
  again.run([&](const JobProgress& now) { least = std::min(least, now.done_bytes); });
  EXPECT_GE(least, 6'000'000u);  // the first pass was not repeated
  EXPECT_TRUE(array_bytes(folder_ / "b") == expected());
}

TEST_F(PlanTest, EndsWellWhenTasksRunTwiceAtOnce) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not survive a fork";
  for (const std::uint64_t shards : {1, 3}) {
    const std::string to = shards == 1 ? "b.npy" : "b";
    const Plan plan = shuffle(to, shards);
    std::vector<pid_t> children;
    for (int i = 0; i < 3; ++i) {
      children.push_back(start_child([&] {
        for (std::size_t stage = 0; stage < plan.stages(); ++stage) {
          while (!plan.ready(stage)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          run_stage(plan, stage);
        }
        return 0;
      }));
    }
    for (const pid_t child : children) expect_success(child);
    EXPECT_TRUE(array_bytes(folder_ / to) == expected());
  }
  EXPECT_EQ(names_in(folder_.path()), (Names{"a.npy", "b", "b.npy"}));
}

TEST_F(PlanTest, NeverReplacesARunFile) {
  const Plan plan = shuffle("b.npy");
  run_stage(plan, 0);
  const std::string run = plan.outputs(0, 0).at(0);
  const std::optional<PathStamp> before = stamp_of(run);
  // As a process that asked whether the task was done just before another one did it.
  JobWatch watch;
  shuffle_of(Facts::parse(plan.text()))->run(0, 0, plan.memory_bytes(), watch);
  EXPECT_TRUE(before && stamp_of(run) == before);
  run_stage(plan, 1);
  EXPECT_TRUE(array_bytes(folder_ / "b.npy") == expected());
}

TEST_F(PlanTest, PublishesNothingThatIsUnfinished) {
  const Plan plan = shuffle("b", 2);
  run_stage(plan, 0);
  plan.run_task(1, 0);
  // Another process is at the first task too: nobody waits for it once the part is there.
  const std::string part = "part-00000-of-00002.npy";
  for (const std::string& name : names_in(folder_.path())) {
    if (!name.starts_with(".b.lowtide-job-")) continue;
    folder_.write(name + "/result/." + part + ".lowtide-part", "unfinished");
  }
  plan.run_task(1, 1);
  EXPECT_EQ(names_in(folder_ / "b"), (Names{part, "part-00001-of-00002.npy"}));
  EXPECT_TRUE(array_bytes(folder_ / "b") == expected());
}

TEST_F(PlanTest, PublishesOnceWhenTheLastTasksEndTogether) {
  folder_.write("s.npy", npy_text("|u1", {8, 1}, pattern(8)));
  constexpr int kTasks = 8;
  for (int round = 0; round < 50; ++round) {
    const std::string to = folder_ / std::to_string(round);
    const Plan plan = plan_shuffle({.paths = {folder_ / "s.npy"}}, to, {.shards = kTasks});
    run_stage(plan, 0);
    std::latch together(kTasks);
    std::atomic<int> failed = 0;
    std::vector<std::thread> threads;
    for (int task = 0; task < kTasks; ++task) {
      threads.emplace_back([&, task] {
        together.arrive_and_wait();
        try {
          plan.run_task(1, static_cast<std::size_t>(task));
        } catch (const IoError&) {
          ++failed;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(failed, 0) << "in round " << round;
    ASSERT_EQ(names_in(to).size(), static_cast<std::size_t>(kTasks));
  }
}

TEST_F(PlanTest, EndsWhenProgressThrows) {
  const Plan plan = shuffle("b.npy");
  struct Enough {};
  EXPECT_THROW(plan.run([](const JobProgress&) { throw Enough(); }), Enough);
  EXPECT_EQ(names_in(folder_.path()), Names{"a.npy"});
}

TEST_F(PlanTest, SaysWhichMemoryWouldDo) {
  const auto said = [&](std::uint64_t memory_bytes) {
    return thrown<std::invalid_argument>([&] {
      (void)plan_shuffle({.paths = {folder_ / "a.npy"}}, folder_ / "b.npy",
                         {.memory_bytes = memory_bytes});
    });
  };
  for (const std::uint64_t memory : {1, 64 << 10, 720 << 10}) {
    const std::string text = said(memory);
    const std::size_t advice = text.find("use at least ");
    ASSERT_NE(advice, std::string::npos) << text;
    const std::uint64_t enough = parse_bytes(text.substr(advice + 13));
    const JobSource source{.paths = {folder_ / "a.npy"}};
    EXPECT_NO_THROW(
        plan_shuffle(source, folder_ / "c.npy", {.memory_bytes = enough, .overwrite = true}).run())
        << text;
  }
  EXPECT_NE(thrown<std::invalid_argument>([&] { (void)shuffle("b", 12'001); }).find("12001"),
            std::string::npos);
}

TEST_F(PlanTest, RefusesASourceWithoutRowsWithoutTalkingOfShards) {
  folder_.write("none.npy", npy_text("<f4", {0, 3}, ""));
  EXPECT_EQ(thrown<std::invalid_argument>([&] {
              (void)plan_shuffle({.paths = {folder_ / "none.npy"}}, folder_ / "b.npy", {});
            }),
            "the source has no rows to shuffle");
}

TEST_F(PlanTest, RefusesATextOfAnotherVersionOrAChangedOne) {
  std::string text = shuffle("b.npy").text();
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              (void)Plan::from_text("lowtide plan 99\n" + text);
            }).find("another version"),
            std::string::npos);
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              (void)Plan::from_text(std::string_view(text).substr(0, text.size() - 9));
            }).find("not the text of a plan"),
            std::string::npos);
  text[text.find("seed 1") + 5] = '2';
  EXPECT_NE(thrown<std::invalid_argument>([&] { (void)Plan::from_text(text); }).find("checksum"),
            std::string::npos);
  EXPECT_THROW((void)Plan::from_text(""), std::invalid_argument);
}

}  // namespace
}  // namespace lowtide::plan_test

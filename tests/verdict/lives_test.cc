#include "verdict/lives.h"

#include <gtest/gtest.h>

#include "meter/sums.h"
#include "verdict/summary.h"
#include "verdict/traces.h"

namespace lowtide::lives_test {
namespace {

const Life* find(const std::vector<Life>& lives, int pid) {
  const auto found = std::ranges::find(lives, pid, &Life::pid);
  return found == lives.end() ? nullptr : &*found;
}

// A parent of 300 MiB; workers live from `begin` to `end`, parts of the run.
Trace with_worker(double begin, double end, const std::function<double(double part)>& mib) {
  Program run(3);
  run.seconds = 48;
  run.count = 400;
  return run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 300 * kMiB));
    if (part < begin || part > end) return;
    reading.processes.push_back(process_of(117, mib(part) * kMiB));
    reading.processes.back().name = "pt_data_worker";
  });
}

TEST(Lives, JudgesAWorkerThatEndsBeforeItsParent) {
  const Trace trace = with_worker(0.05, 0.96, [](double part) { return 100 + 305 * part; });
  const std::vector<Life> lives = lives_of(trace);
  ASSERT_EQ(lives.size(), 2u);
  const Life* const worker = find(lives, 117);
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(worker->name, "pt_data_worker");
  EXPECT_EQ(worker->parent, 100);
  EXPECT_TRUE(worker->ended && worker->lasting && worker->leaks);
  EXPECT_NEAR(worker->begin_s, 0.05 * 48, 0.5);
  EXPECT_NEAR(worker->end_s, 0.96 * 48, 0.5);
  ASSERT_TRUE(worker->heap_trend);
  EXPECT_NEAR(worker->heap_trend->slope, 305 * kMiB / 48, 0.02 * 305 * kMiB / 48);
  EXPECT_FALSE(find(lives, 100)->leaks);
}

TEST(Lives, DoesNotJudgeAProcessThatLivesShort) {
  const Trace trace = with_worker(0.3, 0.5, [](double part) { return 1000 * part; });
  const Life worker = *find(lives_of(trace), 117);
  EXPECT_FALSE(worker.lasting || worker.leaks);
  EXPECT_GT(worker.heap.rise(), 100 * kMiB);  // what it held is told all the same
}

TEST(Lives, APidThatComesAgainIsAnotherProcess) {
  Program run(4);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 300 * kMiB));
    reading.processes.back().start_ticks = part < 0.5 ? 1 : 2;
  });
  EXPECT_EQ(lives_of(trace).size(), 2u);
}

TEST(Lives, LeaveOutTheFallOfAProgramThatEnds) {
  Program run(5);
  run.count = 400;
  Trace trace = run.heap(0, [](double part) {
    return part < 0.97 ? 200 + 100 * part : 300 - 150 * (part - 0.97) / 0.03;
  });
  const Life life = lives_of(trace).front();
  EXPECT_TRUE(life.ended && life.leaks);
  EXPECT_GT(life.heap.last, 296 * kMiB);
  EXPECT_GT(end_of(trace).anon.value(), 296 * kMiB);
  EXPECT_GT(growth_of(trace).anon.value(), 80 * static_cast<std::int64_t>(kMiB));
  Trace pausing = trace;  // it falls, rests and falls again
  for (std::size_t i = 1; i < pausing.readings.size(); i += 2) {
    pausing.readings[i].processes = pausing.readings[i - 1].processes;
  }
  EXPECT_GT(end_of(pausing).anon.value(), 296 * kMiB);
  trace.ending->exit_code.reset();  // it lives on: what it freed is freed
  EXPECT_LT(end_of(trace).anon.value(), 160 * kMiB);
}

TEST(Lives, TheEndOfARunIsWithItsWorkers) {
  const Trace trace = with_worker(0.05, 0.96, [](double part) { return 100 + 305 * part; });
  EXPECT_GT(end_of(trace).anon.value(), (300 + 100 + 285) * kMiB);
  EXPECT_LT(start_of(trace).anon.value(), (300 + 100 + 45) * kMiB);
  EXPECT_GT(growth_of(trace).anon.value(), 240 * static_cast<std::int64_t>(kMiB));
}

TEST(Lives, TheEndOfARunIsItsEndWhereMemoryGrewAfterAWorker) {
  Program run(6);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, (part < 0.9 ? 100 : 900) * kMiB));
    if (part < 0.85) reading.processes.push_back(process_of(101, 50 * kMiB));
  });
  EXPECT_EQ(end_of(trace).anon, 900 * static_cast<std::uint64_t>(kMiB));
}

TEST(Lives, SurviveATraceWithoutFigures) {
  EXPECT_TRUE(lives_of(Trace{}).empty());
  Trace trace;
  trace.readings.resize(2);
  trace.readings[1].seconds = 1;
  trace.readings[1].processes.emplace_back();
  const std::vector<Life> lives = lives_of(trace);
  ASSERT_EQ(lives.size(), 1u);
  EXPECT_EQ(last_whole(trace, lives), 1u);
  EXPECT_EQ(process_text(lives[0].name, lives[0].pid), "");
}

}  // namespace
}  // namespace lowtide::lives_test

// A small shuffle and a small merge, with trouble at every one of their system calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "job/shuffled.h"
#include "lowtide/error.h"
#include "lowtide/jobs.h"
#include "lowtide/token_writer.h"
#include "support/thrown.h"

namespace lowtide::job_faults_test {
namespace {

// A real sync waits for the disk, and thousands of them tell no more than their order does.
class QuickSyncs {
 public:
  static int done(int) { return 0; }

 private:
  sys::Fault<int (*)(int)> fsync_{sys::table.fsync, &done};
  sys::Fault<int (*)(int)> fdatasync_{sys::table.fdatasync, &done};
  sys::Fault<int (*)(int, off_t, off_t, unsigned)> range_{
      sys::table.sync_file_range, +[](int, off_t, off_t, unsigned) { return 0; }};
};

constexpr std::uint64_t kRows = 300;
constexpr std::uint64_t kRowBytes = 100;

// All files below a folder with their contents, without what is hidden.
std::string tree_text(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return file_text(path);
  std::string all;
  for (const std::string& name : names_in(path))
    all += name + "=" + tree_text(path + "/" + name) + ";";
  return all;
}

struct Job {
  std::string to;             // what appears
  std::function<void()> run;  // plans and runs it
};

// After any trouble the destination has its old contents or all of the new ones, and the same call
// then completes the job and leaves nothing else.
void expect_whole(const TempFolder& folder, const Job& job, const std::function<void()>& prepare) {
  std::filesystem::remove_all(job.to);
  job.run();
  const std::string fresh = tree_text(job.to);
  std::filesystem::remove_all(job.to);
  prepare();
  const std::string old = tree_text(job.to);
  ASSERT_NE(old, fresh);
  expect_all_or_nothing(
      folder.path(),
      [&] {
        for (const std::string& name : names_in(folder.path())) {
          if (name.starts_with('.')) std::filesystem::remove_all(folder / name);
        }
        std::filesystem::remove_all(job.to);
        prepare();
      },
      job.run,
      [&](bool whole) {
        const std::string now = tree_text(job.to);
        EXPECT_TRUE(now == fresh || (!whole && now == old)) << now.substr(0, 100);
      });
}

Plan small_shuffle(const TempFolder& folder, const std::string& to, std::uint64_t shards) {
  return plan_shuffle({.paths = {folder / "a.npy"}}, folder / to,
                      {.seed = 4, .shards = shards, .memory_bytes = 1 << 20, .overwrite = true});
}

TEST(JobFaults, LeaveTheOldFileOrTheWholeShuffledOne) {
  const QuickSyncs quick;
  const TempFolder folder;
  folder.write("a.npy", npy_text("|u1", {kRows, kRowBytes}, pattern(kRows * kRowBytes)));
  expect_whole(folder, {folder / "b.npy", [&] { small_shuffle(folder, "b.npy", 1).run(); }},
               [&] { folder.write("b.npy", "old"); });
}

// Task by task, as other machines run them; a task that died is run again.
TEST(JobFaults, LeaveTheOldFolderOrTheWholeShuffledOne) {
  const QuickSyncs quick;
  const TempFolder folder;
  folder.write("a.npy", npy_text("|u1", {kRows, kRowBytes}, pattern(kRows * kRowBytes)));
  expect_whole(folder,
               {folder / "b",
                [&] {
                  const Plan plan = small_shuffle(folder, "b", 2);
                  for (std::size_t stage = 0; stage < plan.stages(); ++stage) {
                    for (std::size_t task = 0; task < plan.tasks(stage); ++task)
                      plan.run_task(stage, task);
                  }
                }},
               [&] { folder.write("b/part-00000-of-00001.npy", "old"); });
}

TEST(JobFaults, LeaveNothingHalfMergedUnderItsName) {
  const QuickSyncs quick;
  const TempFolder folder;
  folder.write("a1.npy", npy_text("|u1", {3000}, pattern(3000)));
  folder.write("a2.npy", npy_text("|u1", {5000}, pattern(5000, 2)));
  const std::vector<JobSource> sources{{.paths = {folder / "a1.npy"}},
                                       {.paths = {folder / "a2.npy"}}};
  expect_whole(
      folder,
      {folder / "m.npy",
       [&] {
         plan_merge(sources, folder / "m.npy", {.memory_bytes = 2 << 20, .overwrite = true}).run();
       }},
      [&] { folder.write("m.npy", "old"); });
}

TEST(JobFaults, NeverLeaveAMergedIndexWithoutItsData) {
  const QuickSyncs quick;
  const TempFolder folder;
  std::vector<JobSource> sources;
  for (const std::string name : {"a.bin", "b.bin"}) {
    TokenWriter writer =
        TokenWriter::create(folder / name, {.format = "megatron", .dtype = "uint16"});
    for (std::uint16_t i = 0; i < 5; ++i) writer.append(std::vector<std::uint16_t>(100 + i, i));
    writer.close();
    sources.push_back({.paths = {folder / name}, .tokens = true});
  }
  const auto merge = [&] {
    plan_merge(sources, folder / "m.bin", {.memory_bytes = 1 << 20, .overwrite = true}).run();
  };
  merge();
  const std::string data = file_text(folder / "m.bin");
  const std::string index = file_text(folder / "m.idx");
  expect_all_or_nothing(
      folder.path(),
      [&] {
        for (const std::string& name : names_in(folder.path())) {
          if (name.starts_with('.') || name.starts_with('m'))
            std::filesystem::remove(folder / name);
        }
      },
      merge,
      [&](bool whole) {
        const std::string now = file_text(folder / "m.idx");
        EXPECT_TRUE((now == index && file_text(folder / "m.bin") == data) ||
                    (!whole && now == "(none)"));
      });
}

// The power-cut model: what a rename shows must be durable before it, and the folder after it.
TEST(JobFaults, MakeEverythingDurableBeforeItHasItsName) {
  const TempFolder folder;
  folder.write("a.npy", npy_text("|u1", {kRows, kRowBytes}, pattern(kRows * kRowBytes)));
  const FaultyCalls calls;
  small_shuffle(folder, "b", 2).run();
  std::string order;  // of syncs and renames; the last rename is that of the folder
  for (const std::string& call : FaultyCalls::log()) {
    if (call == "fsync") order += 's';
    if (call == "rename") order += 'r';
    if (call == "rename_how") order += 'f';
  }
  EXPECT_EQ(std::ranges::count(order, 'f'), 1) << order;
  EXPECT_EQ(order.find('r') > 0 && order[order.find('r') - 1] == 's', true) << order;
  // One run, two parts, and "result" leaves its name before it gets the final one.
  EXPECT_EQ(std::ranges::count(order, 'r'), 4) << order;
  EXPECT_TRUE(order.ends_with("rfs")) << order;
  for (std::size_t at = 1; at + 3 < order.size(); ++at) {
    if (order[at] != 'r') continue;
    EXPECT_EQ(order[at - 1], 's') << order;
    EXPECT_EQ(order[at + 1], 's') << order;
  }
}

TEST(JobFaults, RemoveTheJobFolderAfterAFullDisk) {
  const TempFolder folder;
  folder.write("a.npy", npy_text("|u1", {kRows, kRowBytes}, pattern(kRows * kRowBytes)));
  const Plan plan = small_shuffle(folder, "b.npy", 1);
  const sys::Fault fault(
      sys::table.pwrite, +[](int, const void*, std::size_t, off_t) -> ssize_t {
        errno = ENOSPC;
        return -1;
      });
  EXPECT_EQ(caught<IoError>([&] { plan.run(); })->err, ENOSPC);
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"a.npy"});
}

}  // namespace
}  // namespace lowtide::job_faults_test

// A small shuffle into a file, with trouble at every one of its system calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>

#include "job/faulty_jobs.h"
#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::job_faults_test {
namespace {

TEST(JobFaults, LeaveTheOldFileOrTheWholeShuffledOne) {
  const QuickSyncs quick;
  const TempFolder folder;
  write_small_source(folder);
  expect_whole(folder, {folder / "b.npy", [&] { small_shuffle(folder, "b.npy", 1).run(); }},
               [&] { folder.write("b.npy", "old"); });
}

// The power-cut model: what a rename shows must be durable before it, and the folder after it.
TEST(JobFaults, MakeEverythingDurableBeforeItHasItsName) {
  const TempFolder folder;
  write_small_source(folder);
  const FaultyCalls calls;
  small_shuffle(folder, "b", 2).run();
  std::string order;  // of syncs and renames; the last rename is that of the folder
  for (const std::string& call : FaultyCalls::log()) {
    if (call == "fsync") order += 's';
    if (call == "fsetxattr") order += 'x';  // which job made a part
    if (call == "rename") order += 'r';
    if (call == "rename_how") order += 'f';
  }
  EXPECT_EQ(std::ranges::count(order, 'f'), 1) << order;
  EXPECT_EQ(order.find('r') > 0 && order[order.find('r') - 1] == 's', true) << order;
  EXPECT_GE(std::ranges::count(order, 'x'), 2) << order;
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
  write_small_source(folder);
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

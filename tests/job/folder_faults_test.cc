// A small shuffle into a folder, with trouble at every one of its system calls.
#include <gtest/gtest.h>

#include "job/faulty_jobs.h"

namespace lowtide::folder_faults_test {
namespace {

// Task by task, as other machines run them; a task that died is run again.
TEST(FolderFaults, LeaveTheOldFolderOrTheWholeShuffledOne) {
  const QuickSyncs quick;
  const TempFolder folder;
  write_small_source(folder);
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

}  // namespace
}  // namespace lowtide::folder_faults_test

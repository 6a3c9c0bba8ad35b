#include "meter/group.h"

#include <gtest/gtest.h>

#include "meter/fake_proc.h"

namespace lowtide::group_test {
namespace {

TEST(Group, WorkingSetIsUsageWithoutInactiveFilePages) {
  const FakeProc proc;
  const TempFolder& folder = proc.folder();
  folder.write("proc/self/mountinfo",
               "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
  proc.file(7, "cgroup", "0::/a\n");
  folder.write("cgroup/a/memory.current", "5000\n");
  EXPECT_EQ(read_group(proc.root(), 7).working_set.why, "memory.stat does not report it");
  folder.write("cgroup/a/memory.stat", "anon 1000\ninactive_file 2000\nactive_file 700\n");
  const GroupReading group = read_group(proc.root(), 7);
  EXPECT_EQ(group.version, 2);
  EXPECT_EQ(group.path, folder / "cgroup/a");
  EXPECT_EQ(group.usage.value, 5000u);
  EXPECT_EQ(group.anon.value, 1000u);
  EXPECT_EQ(group.active_file.value, 700u);
  EXPECT_EQ(group.working_set.value, 3000u);
  EXPECT_EQ(group.limit.why, "no limit");
  EXPECT_EQ(group.oom_kills.why, "memory.events does not report it");
  folder.write("cgroup/a/memory.current", "10\n");  // read a moment before memory.stat
  EXPECT_EQ(read_group(proc.root(), 7).working_set.value, 0u);
}

TEST(Group, ThatCannotBeReadSaysWhyInEveryFigure) {
  const FakeProc proc;
  const GroupReading group = read_group(proc.root(), 7);
  for (const Figure* figure :
       {&group.usage, &group.anon, &group.inactive_file, &group.active_file, &group.working_set,
        &group.limit, &group.limit_hits, &group.oom_kills}) {
    EXPECT_EQ(figure->why, "/proc/PID/cgroup cannot be read");
    EXPECT_FALSE(figure->value);
  }
}

}  // namespace
}  // namespace lowtide::group_test

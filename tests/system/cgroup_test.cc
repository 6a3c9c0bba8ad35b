#include "system/cgroup.h"

#include <gtest/gtest.h>

#include <string>

#include "os/temp_folder.h"

namespace lowtide::cgroup_test {
namespace {

class GroupTest : public testing::Test {
 protected:
  GroupTest() : root_{folder_ / "proc", folder_ / "cgroup"} {}
  void set(const std::string& file, const std::string& text) { folder_.write(file, text); }
  void mounts(const std::string& lines) { set("proc/self/mountinfo", lines); }
  TempFolder folder_;
  SystemRoot root_;
};

constexpr char kV2Mount[] = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
constexpr char kV1Mount[] = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

TEST_F(GroupTest, OfAnotherProcessIsReadFromV2) {
  mounts(kV2Mount);
  set("proc/7/cgroup", "0::/a/b\n");
  set("cgroup/a/memory.max", "9000\n");
  set("cgroup/a/b/memory.current", "5000\n");
  set("cgroup/a/b/memory.stat",
      "anon 1000\nfile 3000\ninactive_anon 5\ninactive_file 2000\nactive_file 700\n");
  set("cgroup/a/b/memory.events", "low 0\nhigh 2\nmax 3\noom 1\noom_kill 1\n");
  const Known<GroupUsage> group = group_usage(root_, 7);
  ASSERT_TRUE(group) << group.why;
  EXPECT_EQ(group->version, 2);
  EXPECT_EQ(group->folder, folder_ / "cgroup/a/b");
  EXPECT_EQ(group->usage.value, 5000u);
  EXPECT_EQ(group->anon.value, 1000u);
  EXPECT_EQ(group->inactive_file.value, 2000u);
  EXPECT_EQ(group->active_file.value, 700u);
  EXPECT_EQ(group->limit.value, 9000u);
  EXPECT_EQ(group->limit_hits.value, 3u);
  EXPECT_EQ(group->oom_kills.value, 1u);
}

TEST_F(GroupTest, IsReadFromV1WithAllGroupsBelow) {
  mounts(kV1Mount);
  set("proc/self/cgroup", "4:memory:/job\n");
  set("cgroup/memory/job/memory.usage_in_bytes", "5000\n");
  set("cgroup/memory/job/memory.stat",
      "rss 1\ninactive_file 2\nactive_file 3\ntotal_rss 1000\ntotal_inactive_file 2000\n"
      "total_active_file 700\n");
  set("cgroup/memory/job/memory.failcnt", "4\n");
  set("cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
  const Known<GroupUsage> group = group_usage(root_);
  ASSERT_TRUE(group) << group.why;
  EXPECT_EQ(group->version, 1);
  EXPECT_EQ(group->anon.value, 1000u);
  EXPECT_EQ(group->inactive_file.value, 2000u);
  EXPECT_EQ(group->active_file.value, 700u);
  EXPECT_EQ(group->limit.why, "no limit");
  EXPECT_EQ(group->limit_hits.value, 4u);
  EXPECT_EQ(group->oom_kills.value, 2u);
}

TEST_F(GroupTest, IsTheVersionThatCountsMemoryOnAHybridHost) {
  std::string both = kV1Mount;
  both += "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
  mounts(both);
  set("proc/7/cgroup", "4:memory:/a\n0::/b\n");
  set("cgroup/memory/a/memory.usage_in_bytes", "11\n");
  set("cgroup/unified/b/cgroup.procs", "");
  EXPECT_EQ(group_usage(root_, 7)->version, 1);
  set("proc/7/cgroup", "4:cpu:/a\n0::/b\n");
  set("cgroup/unified/b/memory.current", "12\n");
  EXPECT_EQ(group_usage(root_, 7)->version, 2);
  EXPECT_EQ(group_usage(root_, 7)->usage.value, 12u);
}

TEST_F(GroupTest, SaysWhatItDoesNotKnow) {
  EXPECT_EQ(group_usage(root_, 7).why, "/proc/PID/cgroup cannot be read");
  set("proc/7/cgroup", "0::/\n");
  EXPECT_EQ(group_usage(root_, 7).why, "/proc/self/mountinfo cannot be read");
  mounts("");
  EXPECT_EQ(group_usage(root_, 7).why, "no memory group is mounted");
  mounts(kV2Mount);  // the root group has no files of its own
  const Known<GroupUsage> group = group_usage(root_, 7);
  ASSERT_TRUE(group);
  EXPECT_EQ(group->usage.why, "memory.current does not report it");
  EXPECT_EQ(group->anon.why, "memory.stat does not report it");
  EXPECT_EQ(group->oom_kills.why, "memory.events does not report it");
}

}  // namespace
}  // namespace lowtide::cgroup_test

#include "system/limits.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include "os/sys.h"
#include "os/temp_folder.h"

namespace lowtide::limits_test {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;
const char* const kV1Unlimited = "9223372036854771712\n";

// A /proc and a /sys/fs/cgroup of our own.
class LimitsTest : public testing::Test {
 protected:
  LimitsTest() : root_{folder_ / "proc", folder_ / "cgroup"} {}

  void groups(const std::string& lines) { folder_.write("proc/self/cgroup", lines); }
  void mounts(const std::string& lines) { folder_.write("proc/self/mountinfo", lines); }
  void meminfo(std::uint64_t total_kib, std::uint64_t available_kib) {
    folder_.write("proc/meminfo", "MemTotal:       " + std::to_string(total_kib) +
                                      " kB\nMemFree:             1 kB\nMemAvailable:   " +
                                      std::to_string(available_kib) + " kB\n");
  }
  void set(const std::string& file, const std::string& value) {
    folder_.write("cgroup/" + file, value);
  }
  void v2(const std::string& group) {
    groups("0::" + group + "\n");
    mounts(
        "22 1 0:21 / /proc rw - proc proc rw\n"
        "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void v1(const std::string& group, const std::string& mount_root = "/") {
    groups("5:cpu,cpuacct:/\n4:memory:" + group + "\n1:name=systemd:/\n");
    mounts("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n35 31 0:32 " + mount_root +
           " /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n");
  }
  // "<bytes> <file below the cgroup folder>", or "none".
  [[nodiscard]] std::string tightest() const {
    const std::optional<MemoryLimit> limit = cgroup_limit(root_);
    if (!limit) return "none";
    const std::string prefix = root_.cgroup + "/";
    EXPECT_TRUE(limit->source.starts_with(prefix)) << limit->source;
    return std::to_string(limit->bytes) + " " + limit->source.substr(prefix.size());
  }

  TempFolder folder_;
  SystemRoot root_;
};

TEST_F(LimitsTest, ReadsV2) {
  v2("/job");
  set("job/memory.max", "1000000\n");
  EXPECT_EQ(tightest(), "1000000 job/memory.max");
}

TEST_F(LimitsTest, FindsTheTightestInTheMiddle) {
  v2("/a/b/c");
  set("a/memory.max", "3000\n");
  set("a/b/memory.max", "1000\n");
  set("a/b/c/memory.max", "2000\n");
  EXPECT_EQ(tightest(), "1000 a/b/memory.max");
}

TEST_F(LimitsTest, TakesMemoryHighWhereItIsAloneOrLess) {
  v2("/a/b");
  set("a/b/memory.max", "max\n");
  set("a/b/memory.high", "5000\n");
  EXPECT_EQ(tightest(), "5000 a/b/memory.high");
  set("a/memory.max", "4000\n");
  EXPECT_EQ(tightest(), "4000 a/memory.max");
}

TEST_F(LimitsTest, TakesMaxForNoLimit) {
  v2("/a");
  set("a/memory.max", "max\n");
  set("a/memory.high", "max\n");
  EXPECT_EQ(tightest(), "none");
}

TEST_F(LimitsTest, ReadsV1UpToTheMount) {
  v1("/a/b");
  set("memory/memory.limit_in_bytes", kV1Unlimited);
  set("memory/a/memory.limit_in_bytes", "7000\n");
  set("memory/a/b/memory.limit_in_bytes", kV1Unlimited);
  EXPECT_EQ(tightest(), "7000 memory/a/memory.limit_in_bytes");
}

TEST_F(LimitsTest, TakesTheHugeNumberOfV1ForNoLimit) {
  v1("/");
  set("memory/memory.limit_in_bytes", kV1Unlimited);
  EXPECT_EQ(tightest(), "none");
}

TEST_F(LimitsTest, ReadsBothOnAHybridHost) {
  groups("4:memory:/a\n0::/b\n");
  mounts(
      "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  set("memory/a/memory.limit_in_bytes", "6000\n");
  EXPECT_EQ(tightest(), "6000 memory/a/memory.limit_in_bytes");
  set("unified/b/memory.max", "5000\n");
  EXPECT_EQ(tightest(), "5000 unified/b/memory.max");
}

TEST_F(LimitsTest, ReadsAContainerWhoseMountShowsOnlyItsOwnGroup) {
  v1("/docker/abc/inner", "/docker/abc");
  set("memory/memory.limit_in_bytes", "8000\n");
  set("memory/inner/memory.limit_in_bytes", "9000\n");
  EXPECT_EQ(tightest(), "8000 memory/memory.limit_in_bytes");
}

TEST_F(LimitsTest, FallsBackToTheMountWhereTheGroupIsNotSeen) {
  v1("/docker/abc", "/docker/abcdef");
  set("memory/memory.limit_in_bytes", "8000\n");
  EXPECT_EQ(tightest(), "8000 memory/memory.limit_in_bytes");
  v2("/../outside");
  set("memory.max", "7000\n");
  set("outside/memory.max", "10\n");
  EXPECT_EQ(tightest(), "7000 memory.max");
  v2("/gone/away");
  EXPECT_EQ(tightest(), "7000 memory.max");
}

TEST_F(LimitsTest, PrefersTheMountThatShowsOurGroup) {
  groups("0::/ours/x\n");
  mounts(
      "30 23 0:26 /theirs /sys/fs/cgroup/theirs rw - cgroup2 cgroup2 rw\n"
      "31 23 0:26 /ours /sys/fs/cgroup/with\\040space rw - cgroup2 cgroup2 rw\n");
  set("theirs/memory.max", "10\n");
  set("with space/x/memory.max", "2000\n");
  EXPECT_EQ(tightest(), "2000 with space/x/memory.max");
}

TEST_F(LimitsTest, KnowsNoLimitWhereNothingIsThere) {
  EXPECT_EQ(tightest(), "none");
  groups("0::/a\n");
  EXPECT_EQ(tightest(), "none");
  mounts("");
  EXPECT_EQ(tightest(), "none");
  v2("/a");
  EXPECT_EQ(tightest(), "none");
  EXPECT_FALSE(physical_bytes(root_));
  EXPECT_FALSE(available_bytes(root_));
  EXPECT_EQ(default_memory_bytes(root_), 256 * kMiB);
}

TEST_F(LimitsTest, SurvivesNonsense) {
  groups("::::\nx\n\n4\n0:\n0::\n");
  mounts("\n-\na - \n1 2 3 4 5 6 -\n1 2 3 / /sys/fs/cgroup\\0 rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(tightest(), "none");
  v2("/a");
  for (const char* value : {"", "\n", "-5", "max5", "0", "99999999999999999999999"}) {
    set("a/memory.max", value);
    EXPECT_EQ(tightest(), "none") << value;
  }
}

TEST_F(LimitsTest, ReadsPhysicalAndAvailableMemory) {
  meminfo(2048, 1024);
  EXPECT_EQ(physical_bytes(root_), 2 * kMiB);
  EXPECT_EQ(available_bytes(root_), kMiB);
}

TEST_F(LimitsTest, CountsInactiveFilePagesAsAvailableInAGroup) {
  meminfo(1 << 20, 1 << 19);
  v2("/a");
  set("a/memory.max", std::to_string(100 * kMiB));
  EXPECT_EQ(available_bytes(root_), 100 * kMiB);
  set("a/memory.current", std::to_string(80 * kMiB) + "\n");
  EXPECT_EQ(available_bytes(root_), 20 * kMiB);
  set("a/memory.stat", "anon 1\nactive_file 2\ninactive_file " + std::to_string(30 * kMiB) + "\n");
  EXPECT_EQ(available_bytes(root_), 50 * kMiB);
  set("a/memory.current", std::to_string(200 * kMiB) + "\n");
  EXPECT_EQ(available_bytes(root_), 0u);
}

TEST_F(LimitsTest, TakesTheGroupWithTheLeastRoom) {
  v1("/a/b");
  set("memory/a/memory.limit_in_bytes", std::to_string(100 * kMiB));
  set("memory/a/memory.usage_in_bytes", std::to_string(95 * kMiB));
  set("memory/a/memory.stat",
      "inactive_file 1\ntotal_inactive_file " + std::to_string(2 * kMiB) + "\n");
  set("memory/a/b/memory.limit_in_bytes", std::to_string(50 * kMiB));
  set("memory/a/b/memory.usage_in_bytes", std::to_string(kMiB));
  EXPECT_EQ(available_bytes(root_), 7 * kMiB);
}

TEST_F(LimitsTest, DefaultsToAnEighthOfWhatThereIsAndAtMost256MiB) {
  meminfo(64 << 20, 1);
  EXPECT_EQ(default_memory_bytes(root_), 256 * kMiB);
  meminfo(1 << 20, 1);
  EXPECT_EQ(default_memory_bytes(root_), 128 * kMiB);
  v2("/a");
  set("a/memory.max", std::to_string(512 * kMiB));
  EXPECT_EQ(default_memory_bytes(root_), 64 * kMiB);
}

TEST(Limits, ReadTheRealSystem) {
  if (const auto physical = physical_bytes()) {
    EXPECT_GT(*physical, 16 * kMiB);
    EXPECT_LE(available_bytes().value_or(0), *physical);
  } else {
    GTEST_SKIP() << "/proc/meminfo is hidden";
  }
  EXPECT_GT(default_memory_bytes(), 0u);
  EXPECT_LE(default_memory_bytes(), 256 * kMiB);
}

TEST(Limits, AreUnknownWhereProcCannotBeRead) {
  const sys::Fault fault(
      sys::table.open, +[](const char*, int) {
        errno = EACCES;
        return -1;
      });
  EXPECT_FALSE(cgroup_limit());
  EXPECT_FALSE(physical_bytes());
  EXPECT_FALSE(available_bytes());
}

}  // namespace
}  // namespace lowtide::limits_test

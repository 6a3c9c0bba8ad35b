// cgroup.h - the memory cgroups of a process, from its own up to the mount.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/known.h"
#include "system/text_file.h"

namespace lowtide {

// One group that limits memory.
struct GroupLimit {
  std::uint64_t limit_bytes = 0;
  // What can still be used: the limit minus usage, plus inactive file pages, which the kernel drops
  // first. The whole limit if usage cannot be read.
  std::uint64_t left_bytes = 0;
  std::string source;  // the file that contains the limit
};

// Every limit that applies to this process, v1 and v2, in no particular order. Empty: none, or none
// readable.
[[nodiscard]] std::vector<GroupLimit> group_limits(const SystemRoot& root);

// What the memory group of a process currently holds, including all groups below it. Bytes.
struct GroupUsage {
  std::string folder;
  int version = 0;  // 1 or 2
  Figure usage, anon, inactive_file, active_file;
  Figure limit;       // the tightest over the group and all above it
  Figure limit_hits;  // how often usage reached the group's own limit
  Figure oom_kills;
};

// The group of another process, or of ours for pid 0. On a hybrid host, the version that counts
// memory. Reads four small files and the limits above: 30 to 100 us. Any thread.
[[nodiscard]] Known<GroupUsage> group_usage(const SystemRoot& root, int pid = 0);

}  // namespace lowtide

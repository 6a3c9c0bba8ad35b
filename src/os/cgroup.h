// cgroup.h - the memory control groups that this process is in, from its own up to the mount.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/limits.h"

namespace lowtide {

// One group that limits memory.
struct GroupLimit {
  std::uint64_t limit_bytes = 0;
  // What can still be taken: the limit minus usage, plus inactive file pages, which the kernel
  // drops first. The whole limit where usage cannot be read.
  std::uint64_t room_bytes = 0;
  std::string source;  // the file that holds the limit
};

// Every limit that holds for this process, v1 and v2, in no particular order. Empty: none, or none
// readable.
[[nodiscard]] std::vector<GroupLimit> group_limits(const SystemRoot& root);

}  // namespace lowtide

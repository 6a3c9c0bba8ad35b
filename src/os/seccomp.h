// seccomp.h - how far a process may use the kernel at all.
#pragma once

#include <cstdint>

#include "os/limits.h"

namespace lowtide {

// Filters of system calls that the process is under; before Linux 5.9 only 0 or not 0. 0 where
// nothing tells.
[[nodiscard]] std::uint64_t call_filters(const SystemRoot& root, int pid);

}  // namespace lowtide

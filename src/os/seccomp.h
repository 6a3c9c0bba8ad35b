// seccomp.h - the restrictions on a process's system calls.
#pragma once

#include <cstdint>

#include "os/limits.h"

namespace lowtide {

// The number of seccomp filters that apply to the process; before Linux 5.9 only 0 or not 0. 0 if
// it cannot be read.
[[nodiscard]] std::uint64_t call_filters(const SystemRoot& root, int pid);

}  // namespace lowtide

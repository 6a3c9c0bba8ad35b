// kernel.h - what the kernel reports about itself and allows this process. A value that it does not
// report is nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "system/text_file.h"

namespace lowtide {

[[nodiscard]] std::optional<std::string> kernel_release(const SystemRoot& root = {});

// The sysctl kernel.io_uring_disabled: 0 allows everyone, 1 only one group, 2 no one. nullopt
// before Linux 6.6.
[[nodiscard]] std::optional<std::uint64_t> io_uring_disabled(const SystemRoot& root = {});

// Whether a seccomp filter, as in containers, restricts the system calls of this process.
[[nodiscard]] std::optional<bool> calls_are_filtered(const SystemRoot& root = {});

// The number of seccomp filters that apply to a process; before Linux 5.9 only 0 or not 0. 0 if it
// cannot be read.
[[nodiscard]] std::uint64_t call_filters(const SystemRoot& root, int pid);

// "always", "madvise" or "never": which memory gets transparent huge pages.
[[nodiscard]] std::optional<std::string> huge_page_mode(const SystemRoot& root = {});

struct ProcessLimit {
  std::optional<std::uint64_t> soft, hard;  // nullopt: unlimited
};
// By its name in /proc/self/limits: "Max open files", "Max locked memory".
[[nodiscard]] std::optional<ProcessLimit> process_limit(std::string_view name,
                                                        const SystemRoot& root = {});

}  // namespace lowtide

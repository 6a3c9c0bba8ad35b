// kernel.h - what the kernel says of itself and allows this process. What it does not say is
// nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "os/limits.h"

namespace lowtide {

[[nodiscard]] std::optional<std::string> kernel_release(const SystemRoot& root = {});

// The sysctl kernel.io_uring_disabled: 0 nobody is kept out, 1 all but one group, 2 everybody.
// nullopt before Linux 6.6.
[[nodiscard]] std::optional<std::uint64_t> io_uring_disabled(const SystemRoot& root = {});

// Whether a seccomp filter, as containers have, decides which system calls this process may make.
[[nodiscard]] std::optional<bool> calls_are_filtered(const SystemRoot& root = {});

// "always", "madvise" or "never": who gets transparent huge pages.
[[nodiscard]] std::optional<std::string> huge_page_mode(const SystemRoot& root = {});

struct ProcessLimit {
  std::optional<std::uint64_t> soft, hard;  // nullopt: unlimited
};
// By the name that /proc/self/limits has for it: "Max open files", "Max locked memory".
[[nodiscard]] std::optional<ProcessLimit> process_limit(std::string_view name,
                                                        const SystemRoot& root = {});

}  // namespace lowtide

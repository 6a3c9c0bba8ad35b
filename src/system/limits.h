// limits.h - how much memory this process may use: physical memory and every cgroup above it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "system/text_file.h"

namespace lowtide {

struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::string source;  // the file that contains it
};

// The tightest limit over this process's cgroup and all its ancestors, v1 and v2 (memory.max and
// memory.high), on hybrid hosts too. Mount points come from /proc/self/mountinfo. nullopt: no
// limit, or none readable.
[[nodiscard]] std::optional<MemoryLimit> cgroup_limit(const SystemRoot& root = {});

// MemTotal and MemAvailable of /proc/meminfo; nullopt if /proc does not report them.
[[nodiscard]] std::optional<std::uint64_t> physical_bytes(const SystemRoot& root = {});
// What can be used without displacing other memory: MemAvailable, or less if the tightest cgroup
// has less room left (its limit minus usage plus its inactive file pages).
[[nodiscard]] std::optional<std::uint64_t> available_bytes(const SystemRoot& root = {});

// The default of `memory`: 256 MiB, or an eighth of the tightest limit or of physical memory if
// that is less.
[[nodiscard]] std::uint64_t default_memory_bytes(const SystemRoot& root = {});

}  // namespace lowtide

#include "system/limits.h"

#include <algorithm>
#include <vector>

#include "core/checked.h"
#include "system/cgroup.h"

namespace lowtide {
namespace {

std::optional<std::uint64_t> meminfo_bytes(const SystemRoot& root, const char* key) {
  const std::optional<std::string> text = read_text(root.proc + "/meminfo");
  if (!text) return std::nullopt;
  const std::optional<std::uint64_t> kib = number_of(*text, key);
  std::uint64_t bytes = 0;
  if (!kib || !checked_mul(*kib, 1024, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace

std::optional<MemoryLimit> cgroup_limit(const SystemRoot& root) {
  const std::vector<GroupLimit> limits = group_limits(root);
  const auto tightest = std::min_element(
      limits.begin(), limits.end(),
      [](const GroupLimit& a, const GroupLimit& b) { return a.limit_bytes < b.limit_bytes; });
  if (tightest == limits.end()) return std::nullopt;
  return MemoryLimit{tightest->limit_bytes, tightest->source};
}

std::optional<std::uint64_t> physical_bytes(const SystemRoot& root) {
  return meminfo_bytes(root, "MemTotal");
}

std::optional<std::uint64_t> available_bytes(const SystemRoot& root) {
  std::optional<std::uint64_t> available = meminfo_bytes(root, "MemAvailable");
  for (const GroupLimit& group : group_limits(root)) {
    available = std::min(available.value_or(group.left_bytes), group.left_bytes);
  }
  return available;
}

std::uint64_t default_memory_bytes(const SystemRoot& root) {
  constexpr std::uint64_t kMostBytes = 256ULL << 20;
  constexpr std::uint64_t kShare = 8;
  std::uint64_t bytes = kMostBytes;
  if (const auto limit = cgroup_limit(root)) bytes = std::min(bytes, limit->bytes / kShare);
  if (const auto physical = physical_bytes(root)) bytes = std::min(bytes, *physical / kShare);
  return bytes;
}

}  // namespace lowtide

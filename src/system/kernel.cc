#include "system/kernel.h"

#include <vector>

namespace lowtide {

std::optional<std::string> kernel_release(const SystemRoot& root) {
  const std::optional<std::string> text = read_text(root.proc + "/sys/kernel/osrelease");
  if (!text) return std::nullopt;
  const std::string release = text->substr(0, text->find('\n'));
  if (release.empty()) return std::nullopt;
  return release;
}

std::optional<std::uint64_t> io_uring_disabled(const SystemRoot& root) {
  const std::optional<std::string> text = read_text(root.proc + "/sys/kernel/io_uring_disabled");
  return text ? leading_number(*text) : std::nullopt;
}

std::optional<bool> calls_are_filtered(const SystemRoot& root) {
  constexpr std::uint64_t kFilterMode = 2;
  const std::optional<std::string> text = read_text(root.proc + "/self/status");
  const std::optional<std::uint64_t> mode = text ? number_of(*text, "Seccomp") : std::nullopt;
  if (!mode) return std::nullopt;
  return *mode == kFilterMode;
}

std::uint64_t call_filters(const SystemRoot& root, int pid) {
  const std::optional<std::string> text =
      read_text(root.proc + "/" + std::to_string(pid) + "/status");
  if (!text) return 0;
  if (const auto filters = number_of(*text, "Seccomp_filters")) return *filters;
  return number_of(*text, "Seccomp").value_or(0);
}

std::optional<std::string> huge_page_mode(const SystemRoot& root) {
  const std::optional<std::string> text =
      read_text(root.sys + "/kernel/mm/transparent_hugepage/enabled");
  if (!text) return std::nullopt;
  const std::size_t first = text->find('[');
  const std::size_t end = text->find(']');
  if (first == std::string::npos || end == std::string::npos || end < first) return std::nullopt;
  return text->substr(first + 1, end - first - 1);
}

std::optional<ProcessLimit> process_limit(std::string_view name, const SystemRoot& root) {
  const std::optional<std::string> text = read_text(root.proc + "/self/limits");
  if (!text) return std::nullopt;
  for (std::string_view line : split(*text, '\n')) {
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    const std::vector<std::string_view> values = split(line, ' ');
    if (values.size() < 2) return std::nullopt;
    return ProcessLimit{leading_number(values[0]), leading_number(values[1])};
  }
  return std::nullopt;
}

}  // namespace lowtide

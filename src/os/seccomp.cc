#include "os/seccomp.h"

#include <optional>
#include <string>

#include "os/text_file.h"

namespace lowtide {

std::uint64_t call_filters(const SystemRoot& root, int pid) {
  const std::optional<std::string> text =
      read_text(root.proc + "/" + std::to_string(pid) + "/status");
  if (!text) return 0;
  if (const auto filters = number_of(*text, "Seccomp_filters")) return *filters;
  return number_of(*text, "Seccomp").value_or(0);
}

}  // namespace lowtide

// demo_results.h - what `lowtide demo` measured: as a table, in words, as JSON and as a page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/command/compare.h"
#include "lowtide/command/demo.h"

namespace lowtide::cli {

// What one method did.
struct DemoResult {
  DemoMethod method;
  int exit_code = 0;
  DemoRate rate;
  std::optional<Recording> recording;  // empty: it failed
  std::optional<std::uint64_t> cache_grown_bytes;
};

struct DemoResults {
  std::uint64_t file_bytes = 0;
  double seconds = 0;               // at most this many per method
  std::vector<DemoResult> free;     // without a limit
  std::uint64_t limit_bytes = 0;    // 0: there is no memory group
  std::vector<DemoResult> limited;  // inside the memory group
};

[[nodiscard]] std::string demo_text(const DemoResults& results);
[[nodiscard]] std::string demo_json(const DemoResults& results);
[[nodiscard]] Comparison demo_comparison(const DemoResults& results);

}  // namespace lowtide::cli

// looks.h - the colour, pattern and name of a layer in pictures and legends.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "verdict/series.h"

namespace lowtide {

inline constexpr const char* kUnmappedCache = "page cache, not mapped";

// The patterns of chart.css, `look-0` and so on: one per layer, always the same for the same kind.
// Files have the looks 1 to 5, in order.
[[nodiscard]] std::vector<int> looks_of(const View& view);

// The name of a layer in the legend.
[[nodiscard]] std::string layer_title(const Layer& layer);
// The label on its area: for a file, the last part of its path.
[[nodiscard]] std::string layer_name(const Layer& layer, std::size_t most_letters);

// One line of a legend: a sign of 22 x 14 units, as SVG, and its words, not escaped yet.
struct LegendEntry {
  std::string sign, title;
};
// In drawing order: the top of the stack first; then the memory limit. Names what is unknown.
[[nodiscard]] std::vector<LegendEntry> legend_of(const Series& series);

// The `defs` element with `lt-look-0` and so on, and `lt-unknown`.
[[nodiscard]] std::string pattern_definitions();

}  // namespace lowtide

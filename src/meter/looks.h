// looks.h - the colour, pattern and name by which a layer is known in pictures and legends.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "meter/series.h"

namespace lowtide {

inline constexpr const char* kUnmappedCache = "page cache, not mapped";

// The patterns of chart.css, `look-0` and so on: one for each layer, the same for the same kind.
// Files have the looks 1 to 5, in order.
[[nodiscard]] std::vector<int> looks_of(const View& view);

// What the legend calls a layer.
[[nodiscard]] std::string layer_title(const Layer& layer);
// What stands on its area: of a file the last part of the path.
[[nodiscard]] std::string layer_name(const Layer& layer, std::size_t most_letters);

// The `defs` element with `lt-look-0` and so on, and `lt-unknown`.
[[nodiscard]] std::string pattern_definitions();

}  // namespace lowtide

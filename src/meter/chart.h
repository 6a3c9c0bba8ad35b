// chart.h - a series as one SVG picture: the stack of memory, below it the bytes read a second.
//
// No colour stands alone: areas have patterns and, where there is room, their names on them; lines
// have dashes and names. What is unknown is left open.
#pragma once

#include <string>
#include <vector>

#include "lowtide/profile.h"
#include "meter/series.h"

namespace lowtide {

// The patterns of chart.css, `look-0` and so on: one for each layer, the same for the same kind.
// Files have the looks 1 to 5, in order.
[[nodiscard]] std::vector<int> looks_of(const View& view);

// What the legend calls a layer.
[[nodiscard]] std::string layer_title(const Layer& layer);

inline constexpr double kSmallChartWidth = 440, kSmallChartHeight = 260;

// An svg element of 960 x 520 units (a small one: as above) with the definitions of all patterns,
// classes as in chart.css and no style of its own. `title` and `description` are for screen
// readers. Marks beyond 25 are thinned out evenly.
[[nodiscard]] std::string draw_chart(const Series& series, const std::vector<Mark>& marks,
                                     const std::string& title, const std::string& description,
                                     const PictureOptions& options = {});

}  // namespace lowtide

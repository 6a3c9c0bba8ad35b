// chart.h - a series as one SVG picture: the stack of memory, below it the bytes read per second.
//
// No colour stands alone: areas have patterns and, where there is room, their names on them, of
// which no two overlap; lines have dashes and names. What is unknown is left open.
#pragma once

#include <string>
#include <vector>

#include "lowtide/profile.h"
#include "meter/series.h"

namespace lowtide {

inline constexpr double kSmallChartWidth = 440, kSmallChartHeight = 260;

// An svg element of 960 x 520 units (a small one: as above) with the definitions of all patterns,
// classes as in chart.css and no style of its own. `title` and `description` are for screen
// readers. Marks beyond 25 are thinned out evenly.
[[nodiscard]] std::string draw_chart(const Series& series, const std::vector<Mark>& marks,
                                     const std::string& title, const std::string& description,
                                     const PictureOptions& options = {});

}  // namespace lowtide

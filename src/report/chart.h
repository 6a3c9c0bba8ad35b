// chart.h - a series as one SVG picture: the stack of memory, below it the bytes read per second.
//
// No meaning rests on colour alone: areas have patterns and, where there is room, names that never
// overlap; lines have dashes and names. What is unknown is left open.
#pragma once

#include <string>
#include <vector>

#include "lowtide/profile.h"
#include "verdict/series.h"

namespace lowtide {

inline constexpr double kSmallChartWidth = 440, kSmallChartHeight = 260;

// An svg element of 960 x 520 units (a small one: see above) that contains the definitions of all
// patterns, uses the classes of chart.css and has no style of its own. `title` and `description`
// are for screen readers. More than 25 marks are thinned out evenly.
[[nodiscard]] std::string draw_chart(const Series& series, const std::vector<Mark>& marks,
                                     const std::string& title, const std::string& description,
                                     const PictureOptions& options = {});

}  // namespace lowtide

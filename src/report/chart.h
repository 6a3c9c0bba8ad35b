// chart.h - a series as one SVG picture: the stack of memory, below it the bytes read per second.
//
// No meaning rests on colour alone: areas have patterns and, where there is room, names that never
// overlap; lines have dashes and names. What is unknown is left open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/profile.h"
#include "report/looks.h"
#include "verdict/series.h"

namespace lowtide {

inline constexpr double kChartWidth = 960, kSmallChartWidth = 440, kSmallChartHeight = 260;
inline constexpr std::size_t kSmallChartPoints = 120;

// Memory and page cache at their highest moment, in bytes: the least that the axis must reach.
[[nodiscard]] std::uint64_t chart_peak(const Series& series);

// An svg element of 960 x 520 units (a small one: see above) that contains the definitions of all
// patterns, uses the classes of chart.css and has no style of its own. `title` and `description`
// are for screen readers. More than 25 marks are thinned out evenly.
[[nodiscard]] std::string draw_chart(const Series& series, const std::vector<Mark>& marks,
                                     const std::string& title, const std::string& description,
                                     const PictureOptions& options = {});

// A legend in two columns for a picture of that width; returns its height.
double svg_legend(const std::vector<LegendEntry>& entries, double width, double top,
                  std::string& out);
// A file of its own around a picture, with chart.css and a background.
[[nodiscard]] std::string svg_file(double width, double height, const std::string& body);

}  // namespace lowtide

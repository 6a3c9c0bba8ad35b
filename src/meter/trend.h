// trend.h - how a series of bytes moves: does it grow steadily, and how fast?
//
// What a program frees again is no growth: what counts is the floor, the level below which the
// series never falls again. A periodic job or a collector's saw-tooth has a flat floor, a leak
// under either has a rising one.
#pragma once

#include <optional>
#include <vector>

namespace lowtide {

struct Point {
  double seconds = 0;
  double bytes = 0;
};

struct Trend {
  double slope = 0;     // of the low points, bytes a second: the median of all between two of them
  double error = 0;     // one standard error of it
  double growth = 0;    // of the floor, last minus first
  bool steady = false;  // rises all the time, in the later half too, well above its scatter
};

// Points in order of time. Empty where there are too few to say: fewer than 12, or within 1 s.
[[nodiscard]] std::optional<Trend> trend_of(const std::vector<Point>& points);

}  // namespace lowtide

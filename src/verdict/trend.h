// trend.h - how a series of bytes moves: does it grow steadily, and how fast?
//
// Memory that a program frees again is not growth. What counts is the floor, the level below which
// the series never falls again. A periodic job or a garbage collector's saw-tooth has a flat floor;
// a leak underneath has a rising one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lowtide {

struct Point {
  double seconds = 0;
  double bytes = 0;
};

// A series and its most important values.
struct Course {
  std::vector<Point> points;
  std::uint64_t first = 0, peak = 0, last = 0;

  void see(double seconds, const std::optional<std::uint64_t>& value);
  [[nodiscard]] bool known() const { return !points.empty(); }
  [[nodiscard]] std::uint64_t rise() const { return peak - first; }  // to its peak
};

struct Trend {
  double slope = 0;     // bytes per second: the median slope between any two low points
  double error = 0;     // its standard error
  double growth = 0;    // of the floor, last minus first
  bool steady = false;  // rises throughout, also in the later half, well above its scatter
};

// Points in order of time. Empty if there are too few to judge: fewer than 12, or within 1 s.
[[nodiscard]] std::optional<Trend> trend_of(const std::vector<Point>& points);

// Whether it is a leak: it grows steadily, by enough to matter compared with its peak.
[[nodiscard]] bool is_leak(const std::optional<Trend>& trend, std::uint64_t peak_bytes);

}  // namespace lowtide

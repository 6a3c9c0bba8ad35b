// trend.h - how a series of bytes moves: does it grow steadily, and how fast?
//
// What a program frees again is no growth: what counts is the floor, the level below which the
// series never falls again. A periodic job or a collector's saw-tooth has a flat floor, a leak
// under either has a rising one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lowtide {

struct Point {
  double seconds = 0;
  double bytes = 0;
};

// A series and what a reader wants first of it.
struct Course {
  std::vector<Point> points;
  std::uint64_t first = 0, peak = 0, last = 0;

  void see(double seconds, const std::optional<std::uint64_t>& value);
  [[nodiscard]] bool known() const { return !points.empty(); }
  [[nodiscard]] std::uint64_t rise() const { return peak - first; }  // to its peak
};

struct Trend {
  double slope = 0;     // of the low points, bytes a second: the median of all between two of them
  double error = 0;     // one standard error of it
  double growth = 0;    // of the floor, last minus first
  bool steady = false;  // rises all the time, in the later half too, well above its scatter
};

// Points in order of time. Empty where there are too few to say: fewer than 12, or within 1 s.
[[nodiscard]] std::optional<Trend> trend_of(const std::vector<Point>& points);

// Whether that is a leak: it grows steadily, by enough to matter beside its peak.
[[nodiscard]] bool is_leak(const std::optional<Trend>& trend, std::uint64_t peak_bytes);

}  // namespace lowtide

#include "verdict/trend.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lowtide {
namespace {

constexpr std::size_t kFewestPoints = 12;
constexpr double kShortestSeconds = 1;
constexpr double kSureErrors = 7;  // below this, noise alone sometimes has such a slope
constexpr std::size_t kFewestSlices = 6, kMostSlices = 48, kPointsInSlice = 8;

// Requires values. `part` 0.5 gives the median.
double quantile(std::vector<double> values, double part) {
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

// The low fifth of each slice of time. Not the minimum, because a single reading that missed a
// process would become the floor of everything before it.
std::vector<Point> lows(const std::vector<Point>& points) {
  const std::size_t slices = std::clamp(points.size() / kPointsInSlice, kFewestSlices, kMostSlices);
  const double begin = points.front().seconds;
  const double length = (points.back().seconds - begin) / static_cast<double>(slices);
  std::vector<Point> found;
  auto at = points.begin();
  for (std::size_t slice = 0; slice < slices; ++slice) {
    const double end = begin + length * static_cast<double>(slice + 1);
    std::vector<double> bytes;
    for (; at != points.end() && (at->seconds < end || slice + 1 == slices); ++at) {
      bytes.push_back(at->bytes);
    }
    if (!bytes.empty()) found.push_back({end - length / 2, quantile(std::move(bytes), 0.2)});
  }
  return found;
}

// Each point becomes the minimum of itself and all later points.
std::vector<Point> floors(std::vector<Point> points) {
  for (std::size_t i = points.size() - 1; i-- > 0;) {
    points[i].bytes = std::min(points[i].bytes, points[i + 1].bytes);
  }
  return points;
}

// The median of the slopes between all pairs of points (the Theil-Sen estimator).
double median_slope(const std::vector<Point>& points) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      const double seconds = points[j].seconds - points[i].seconds;
      if (seconds > 0) slopes.push_back((points[j].bytes - points[i].bytes) / seconds);
    }
  }
  return slopes.empty() ? 0 : quantile(std::move(slopes), 0.5);
}

// The error of a slope over points spread evenly in time. 1.48 turns a median deviation into a
// standard deviation; 1.25 accounts for a median being less precise than a mean.
double slope_error(const std::vector<Point>& points, double slope) {
  std::vector<double> rests;
  for (const Point& point : points) rests.push_back(point.bytes - slope * point.seconds);
  const double middle = quantile(rests, 0.5);
  for (double& rest : rests) rest = std::abs(rest - middle);
  const double spread = 1.48 * quantile(std::move(rests), 0.5);
  const double seconds = points.back().seconds - points.front().seconds;
  const auto count = static_cast<double>(points.size());
  return seconds > 0 ? 1.25 * spread * std::sqrt(12 / count) / seconds : 0;
}

double level_at(const std::vector<Point>& points, double seconds) {
  for (const Point& point : points) {
    if (point.seconds >= seconds) return point.bytes;
  }
  return points.back().bytes;
}

// Whether the floor rises in nearly every sixth of the time, with no sixth contributing half of the
// growth, and in the later half too. This excludes steps, which are few and large, and caches,
// which fill up at some point.
bool rises_evenly(const std::vector<Point>& floor, double growth) {
  constexpr int kParts = 6;
  const double begin = floor.front().seconds;
  const double part = (floor.back().seconds - begin) / kParts;
  int rising = 0;
  double largest = 0, late = 0;
  for (int i = 0; i < kParts; ++i) {
    const double rise = level_at(floor, begin + part * (i + 1)) - level_at(floor, begin + part * i);
    if (rise > 0.25 * growth / kParts) ++rising;
    largest = std::max(largest, rise);
    if (i >= kParts / 2) late += rise;
  }
  const bool even = rising >= kParts - 1 ? largest < 0.5 * growth
                                         : rising >= kParts - 2 && largest < 0.4 * growth;
  return even && late > 0.25 * growth;
}

// Compares the slope of the later half with that of the whole.
bool levels_off(const std::vector<Point>& floor) {
  const std::vector<Point> later(floor.begin() + static_cast<std::ptrdiff_t>(floor.size() / 2),
                                 floor.end());
  return median_slope(later) < 0.45 * median_slope(floor);
}

}  // namespace

void Course::see(double seconds, const std::optional<std::uint64_t>& value) {
  if (!value) return;
  if (points.empty()) first = *value;
  points.push_back({seconds, static_cast<double>(*value)});
  peak = std::max(peak, *value);
  last = *value;
}

std::optional<Trend> trend_of(const std::vector<Point>& points) {
  if (points.size() < kFewestPoints) return std::nullopt;
  if (points.back().seconds - points.front().seconds < kShortestSeconds) return std::nullopt;
  const std::vector<Point> low = lows(points);
  if (low.size() < kFewestSlices) return std::nullopt;  // the readings cluster in a few slices
  const std::vector<Point> floor = floors(low);
  Trend trend;
  trend.slope = median_slope(low);
  trend.error = slope_error(low, trend.slope);
  trend.growth = floor.back().bytes - floor.front().bytes;
  trend.steady = trend.slope > kSureErrors * trend.error && rises_evenly(floor, trend.growth) &&
                 !levels_off(floor);
  return trend;
}

bool is_leak(const std::optional<Trend>& trend, std::uint64_t peak_bytes) {
  constexpr double kLeastLeak = 4 << 20;  // less is irrelevant, whatever its shape
  if (!trend || !trend->steady) return false;
  return trend->growth >= std::max(kLeastLeak, 0.005 * static_cast<double>(peak_bytes));
}

}  // namespace lowtide

#include <algorithm>
#include <cmath>
#include <vector>

#include "meter/sums.h"
#include "verdict/courses.h"
#include "verdict/evidence.h"
#include "verdict/lives.h"
#include "verdict/series_parts.h"
#include "verdict/verdict.h"

namespace lowtide {
namespace {

// A slope and the stretch of time in which it was seen.
struct Leak {
  Trend trend;
  double from_seconds = 0, to_seconds = 0;
};

std::optional<Leak> leak_of(const Course& heap, const std::optional<Trend>& trend) {
  if (!trend || !is_leak(trend, heap.peak)) return std::nullopt;
  return Leak{*trend, heap.points.front().seconds, heap.points.back().seconds};
}

std::optional<Leak> worst_leak(const Courses& courses) {
  std::optional<Leak> worst;
  for (const Life& life : courses.lives) {
    if (!life.leaks || (worst && worst->trend.growth >= life.heap_trend->growth)) continue;
    worst = leak_of(life.heap, life.heap_trend);
  }
  return worst ? worst : leak_of(courses.heap, trend_of(courses.heap.points));
}

// Centred, so that as much of the heap is above the line as below it.
std::optional<double> bytes_at_zero(const Trace& trace, const Leak& leak) {
  std::vector<double> rests;
  for (const Reading& reading : trace.readings) {
    if (reading.seconds < leak.from_seconds || reading.seconds > leak.to_seconds) continue;
    const auto heap = sums_of(reading).anon;
    if (heap) rests.push_back(static_cast<double>(*heap) - leak.trend.slope * reading.seconds);
  }
  if (rests.empty()) return std::nullopt;
  const auto middle = rests.begin() + static_cast<std::ptrdiff_t>(rests.size() / 2);
  std::ranges::nth_element(rests, middle);
  return *middle;
}

}  // namespace

std::optional<TrendLine> trend_line_of(const Trace& trace) {
  if (judge(trace).kind != VerdictKind::heap_leak) return std::nullopt;
  const std::optional<Leak> leak = worst_leak(courses_of(trace));
  const std::optional<double> base = leak ? bytes_at_zero(trace, *leak) : std::nullopt;
  if (!base) return std::nullopt;
  const auto at = [&](double seconds) {
    return static_cast<std::uint64_t>(
        std::clamp(std::round(*base + leak->trend.slope * seconds), 0.0, 0x1p62));
  };
  return TrendLine{leak->from_seconds, leak->to_seconds, at(leak->from_seconds),
                   at(leak->to_seconds), "leak: " + rate_text(leak->trend)};
}

}  // namespace lowtide

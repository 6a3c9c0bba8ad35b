#include "report/axis.h"

#include <cmath>

namespace lowtide {
namespace {

constexpr std::uint64_t kHighest = 1ULL << 60;

double time_step(double end_seconds, int most) {
  const double least = end_seconds / most;
  for (double power = 1e-6; power < 15; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (factor * power >= least && factor * power < 30) return factor * power;
    }
  }
  for (const double step : {30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0,
                            21600.0, 43200.0}) {
    if (step >= least) return step;
  }
  return std::ceil(least / 86400) * 86400;
}

}  // namespace

ByteTicks byte_ticks(std::uint64_t top, unsigned most) {
  ByteTicks ticks;
  if (top > kHighest) top = kHighest;
  while (ticks.step * most < top) ticks.step *= 2;
  for (std::uint64_t at = 0;; at += ticks.step) {
    ticks.at.push_back(at);
    if (at >= top && ticks.at.size() > 1) return ticks;
  }
}

std::vector<double> time_ticks(double end_seconds, int most) {
  std::vector<double> ticks{0};
  if (!(end_seconds > 0)) return ticks;
  const double step = time_step(end_seconds, most);
  for (int i = 1; i * step <= end_seconds * (1 + 1e-9); ++i) ticks.push_back(i * step);
  return ticks;
}

}  // namespace lowtide

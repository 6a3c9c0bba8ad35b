#include "report/panel.h"

#include <optional>

#include "core/checked.h"
#include "report/markup.h"

namespace lowtide {
namespace {

constexpr double kLonePoint = 1.5;  // half the width of a point without neighbours
constexpr double kTextHeight = 16;

std::string point(char command, double x, double y) {
  return command + coordinate(x) + " " + coordinate(y);
}

// The next [first, last] of known points at or after `from`; empty if there are no more.
struct KnownStretch {
  std::size_t first = 0, last = 0;
};
std::optional<KnownStretch> known_stretch(const Column& column, std::size_t from) {
  while (from < column.size() && !column[from]) ++from;
  if (from >= column.size()) return std::nullopt;
  std::size_t last = from;
  while (last + 1 < column.size() && column[last + 1]) ++last;
  return KnownStretch{from, last};
}

}  // namespace

std::vector<Band> bands_of(const View& view) {
  std::vector<Band> bands;
  const std::size_t points = view.layers.empty() ? 0 : view.layers.front().bytes.size();
  std::vector<std::uint64_t> height(points);
  for (const Layer& layer : view.layers) {
    Band& band = bands.emplace_back();
    band.low.resize(points);
    band.high.resize(points);
    for (std::size_t i = 0; i < points; ++i) {
      if (!layer.bytes[i]) continue;
      band.low[i] = height[i];
      band.high[i] = height[i] = saturating_add(height[i], *layer.bytes[i]);
    }
  }
  return bands;
}

Band band_above(const View& view, const Column& more) {
  Band band{Column(more.size()), Column(more.size())};
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (!more[i]) continue;
    band.low[i] = total_at(view, i).value_or(0);
    band.high[i] = saturating_add(*band.low[i], *more[i]);
  }
  return band;
}

std::string area_path(const Panel& panel, const std::vector<double>& seconds, const Band& band) {
  std::string path;
  for (auto at = known_stretch(band.high, 0); at; at = known_stretch(band.high, at->last + 1)) {
    if (at->first == at->last) {
      const double x = panel.x(seconds[at->first]);
      const double left = std::max(panel.left, x - kLonePoint);
      const double right = std::min(panel.right, x + kLonePoint);
      const double high = panel.y(*band.high[at->first]), low = panel.y(*band.low[at->first]);
      path += point('M', left, high) + point('L', right, high) + point('L', right, low) +
              point('L', left, low) + "Z";
      continue;
    }
    for (std::size_t i = at->first; i <= at->last; ++i) {
      path += point(i == at->first ? 'M' : 'L', panel.x(seconds[i]), panel.y(*band.high[i]));
    }
    for (std::size_t i = at->last + 1; i-- > at->first;) {
      path += point('L', panel.x(seconds[i]), panel.y(*band.low[i]));
    }
    path += "Z";
  }
  return path;
}

std::string line_path(const Panel& panel, const std::vector<double>& seconds,
                      const Column& column) {
  std::string path;
  for (auto at = known_stretch(column, 0); at; at = known_stretch(column, at->last + 1)) {
    const double from = panel.x(seconds[at->first]), to = panel.x(seconds[at->last]);
    if (to - from < 2 * kLonePoint) {
      path += point('M', std::max(panel.left, from - kLonePoint), panel.y(*column[at->first]));
      path += point('L', std::min(panel.right, to + kLonePoint), panel.y(*column[at->last]));
      continue;
    }
    for (std::size_t i = at->first; i <= at->last; ++i) {
      path += point(i == at->first ? 'M' : 'L', panel.x(seconds[i]), panel.y(*column[i]));
    }
  }
  return path;
}

std::string step_path(const Panel& panel, const std::vector<double>& seconds,
                      const Column& column) {
  std::string path;
  for (std::size_t i = 1; i < column.size(); ++i) {
    if (!column[i]) continue;
    const double left = panel.x(seconds[i - 1]), right = panel.x(seconds[i]);
    const double y = panel.y(*column[i]);
    const bool joined = column[i - 1].has_value();
    path += joined ? point('L', left, y) : point('M', left, panel.bottom) + point('L', left, y);
    path += point('L', right, y);
    if (i + 1 == column.size() || !column[i + 1]) path += point('L', right, panel.bottom) + "Z";
  }
  return path;
}

std::optional<Box> room_for(const Panel& panel, const std::vector<double>& seconds,
                            const Band& band, double width, const std::vector<Box>& taken) {
  std::optional<Box> best;
  double best_height = kTextHeight;
  for (std::size_t first = 0; first < seconds.size(); ++first) {
    const double left = panel.x(seconds[first]);
    double high = panel.top, low = panel.bottom;
    for (std::size_t i = first; i < seconds.size() && band.high[i]; ++i) {
      high = std::max(high, panel.y(*band.high[i]));
      low = std::min(low, panel.y(*band.low[i]));
      if (low - high < best_height) break;
      if (panel.x(seconds[i]) - left < width) continue;
      const double middle = (low + high) / 2;
      const Box box{left, middle - kTextHeight / 2, left + width, middle + kTextHeight / 2};
      const bool free = std::ranges::none_of(taken, [&](const Box& one) { return one.meets(box); });
      if (free) {
        best = box;
        best_height = low - high + 0.5;
      }
      break;
    }
  }
  return best;
}

}  // namespace lowtide

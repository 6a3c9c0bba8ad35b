// panel.h - one rectangle of a picture with its two axes: maps seconds and bytes to coordinates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "verdict/series.h"

namespace lowtide {

struct Panel {
  double left = 0, right = 0, top = 0, bottom = 0;
  double end_seconds = 0;
  std::uint64_t top_bytes = 1;

  [[nodiscard]] double x(double seconds) const {
    const double part = end_seconds > 0 ? seconds / end_seconds : 0;
    return left + (right - left) * std::clamp(part, 0.0, 1.0);
  }
  [[nodiscard]] double y(std::uint64_t bytes) const {
    const double part = static_cast<double>(bytes) / static_cast<double>(top_bytes);
    return bottom - (bottom - top) * std::min(part, 1.0);
  }
};

// The edges of one layer stacked on those below it; empty where the layer is unknown.
struct Band {
  std::vector<std::optional<std::uint64_t>> low, high;
};
[[nodiscard]] std::vector<Band> bands_of(const View& view);

// The `d` of a path: the known stretches of the band, each closed. A point without neighbours is
// three units wide.
[[nodiscard]] std::string area_path(const Panel& panel, const std::vector<double>& seconds,
                                    const Band& band);
// The same for a line, which is interrupted where the column is unknown.
[[nodiscard]] std::string line_path(const Panel& panel, const std::vector<double>& seconds,
                                    const Column& column);
// The same for a mean since the previous point: a staircase.
[[nodiscard]] std::string step_path(const Panel& panel, const std::vector<double>& seconds,
                                    const Column& column);

// A column on top of a stack, as one more band.
[[nodiscard]] Band band_above(const View& view, const Column& more);

// The rectangle of a text.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;

  [[nodiscard]] bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};
// The best position for a text of that width inside a band of at least 16 units, without touching
// another text.
[[nodiscard]] std::optional<Box> room_for(const Panel& panel, const std::vector<double>& seconds,
                                          const Band& band, double width,
                                          const std::vector<Box>& taken);

}  // namespace lowtide

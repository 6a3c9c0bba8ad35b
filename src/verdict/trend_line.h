// trend_line.h - the leak that a verdict reports, as a line to draw.
#pragma once

#include <optional>

#include "verdict/series.h"

namespace lowtide {

// Empty if the verdict is not a heap leak. The slope is that of the process that leaks most, or of
// all processes together if no single one leaks; the line runs through the heap of all processes.
[[nodiscard]] std::optional<TrendLine> trend_line_of(const Trace& trace);

}  // namespace lowtide

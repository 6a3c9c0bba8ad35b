// trend_line.h - the leak that a verdict speaks of, as a line to be drawn.
#pragma once

#include <optional>

#include "meter/series.h"

namespace lowtide {

// Empty where the verdict is no leak of the heap. Its slope is that of the process that leaks most,
// where one does, else of all together; it lies amid the heap of all processes.
[[nodiscard]] std::optional<TrendLine> trend_line_of(const Trace& trace);

}  // namespace lowtide

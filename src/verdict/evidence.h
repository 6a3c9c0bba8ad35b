// evidence.h - the courses of a trace as sentences with numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "meter/trace.h"
#include "verdict/courses.h"
#include "verdict/trend.h"

namespace lowtide {

struct Trends {
  std::optional<Trend> heap, file, shmem;
};

// "12.3 +- 0.4 MiB/s", per second, minute or hour, whichever makes the number readable.
[[nodiscard]] std::string rate_text(const Trend& trend);
// "40 readings in 12 s"; in ms, s, min or h.
[[nodiscard]] std::string readings_text(const Courses& courses);

// What the table of start, peak and end does not show; and of that, only what moved by at least a
// twentieth of the peak RSS, because less explains nothing that the curve shows.
[[nodiscard]] std::vector<std::string> evidence_of(const Courses& courses, const Trends& trends);

}  // namespace lowtide

// evidence.h - the facts of a trace as sentences with numbers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "meter/facts.h"
#include "meter/trace.h"
#include "meter/trend.h"

namespace lowtide {

struct Trends {
  std::optional<Trend> heap, file, shmem;
};

// "12.3 +- 0.4 MiB/s", in the unit (second, minute, hour) in which the number is readable.
[[nodiscard]] std::string rate_text(const Trend& trend);
// "40 readings within 12 s", in ms, s, min or h.
[[nodiscard]] std::string readings_text(const Facts& facts);

// What the table of start, peak and end does not tell, and of that only what moved by a twentieth
// of the peak of RSS: less explains nothing that the curve shows.
[[nodiscard]] std::vector<std::string> evidence_of(const Facts& facts, const Trends& trends);

}  // namespace lowtide

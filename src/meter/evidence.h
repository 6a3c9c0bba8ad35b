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

// One sentence for each kind of memory that was seen, the most telling first.
[[nodiscard]] std::vector<std::string> evidence_of(const Trace& trace, const Facts& facts,
                                                   const Trends& trends);

}  // namespace lowtide

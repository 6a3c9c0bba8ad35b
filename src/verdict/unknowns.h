// unknowns.h - what a trace could not measure, in sentences.
#pragma once

#include <string>
#include <vector>

#include "meter/trace.h"

namespace lowtide {

// One sentence per kind of figure and reason: "heap of sudo (pid 12): no permission".
[[nodiscard]] std::vector<std::string> unknowns_of(const Trace& trace);

}  // namespace lowtide

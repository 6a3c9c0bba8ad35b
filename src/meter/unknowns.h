// unknowns.h - what a trace could not measure, in sentences.
#pragma once

#include <string>
#include <vector>

#include "meter/trace.h"

namespace lowtide {

// The reason of a figure that was merely not read this time. It is read only now and then, and is
// not reported as unknown.
inline constexpr const char* kNotAsked = "not asked now";

// One sentence per kind of figure and reason: "heap of sudo (pid 12): no permission".
[[nodiscard]] std::vector<std::string> unknowns_of(const Trace& trace);

}  // namespace lowtide

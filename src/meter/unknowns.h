// unknowns.h - what a trace could not see, in words.
#pragma once

#include <string>
#include <vector>

#include "meter/trace.h"

namespace lowtide {

// Between two readings that asked for it a figure is not unknown, only not looked at: the reason of
// such a figure.
inline constexpr const char* kNotAsked = "not asked now";

// One sentence for each kind of figure and reason: "heap of sudo (pid 12): no permission".
[[nodiscard]] std::vector<std::string> unknowns_of(const Trace& trace);

}  // namespace lowtide

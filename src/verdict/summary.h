// summary.h - a trace in a few numbers: its start after start-up, its peak, its end, its growth.
#pragma once

#include <string>

#include "lowtide/profile.h"
#include "meter/trace.h"

namespace lowtide {

[[nodiscard]] Level start_of(const Trace& trace);
[[nodiscard]] Peak peak_of(const Trace& trace);
[[nodiscard]] Level end_of(const Trace& trace);
[[nodiscard]] Growth growth_of(const Trace& trace);
// The first level after start-up, the highest and the last.
[[nodiscard]] FileCache file_cache_of(const Trace& trace, const std::string& path);

}  // namespace lowtide

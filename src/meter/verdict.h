// verdict.h - what the curve means, in words: is it a leak?
//
// Pure: the same trace gives the same verdict. Page cache is never called a leak.
#pragma once

#include <string>
#include <vector>

#include "lowtide/profile.h"
#include "meter/trace.h"

namespace lowtide {

[[nodiscard]] Verdict judge(const Trace& trace);
[[nodiscard]] Level level_of(const Reading& reading);
[[nodiscard]] Level start_of(const Trace& trace);
[[nodiscard]] Peak peak_of(const Trace& trace);
[[nodiscard]] Level end_of(const Trace& trace);
[[nodiscard]] Growth growth_of(const Trace& trace);
// The first level after start-up, the highest and the last.
[[nodiscard]] FileCache file_cache_of(const Trace& trace, const std::string& path);

}  // namespace lowtide

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
[[nodiscard]] Level start_of(const Trace& trace);
[[nodiscard]] Peak peak_of(const Trace& trace);
[[nodiscard]] Level end_of(const Trace& trace);
[[nodiscard]] Growth growth_of(const Trace& trace);

}  // namespace lowtide

// verdict.h - what the curve means, in words: is it a leak?
//
// Pure: the same trace gives the same verdict. Page cache is never called a leak.
#pragma once

#include "lowtide/profile.h"
#include "meter/trace.h"

namespace lowtide {

[[nodiscard]] Verdict judge(const Trace& trace);

}  // namespace lowtide

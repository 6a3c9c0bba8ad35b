// process_layers.h - which process holds how much, at every reading of a trace.
#pragma once

#include <vector>

#include "verdict/series.h"

namespace lowtide {

// One layer per large process, in order of appearance, named like "python (pid 7)"; the others
// share one. A layer is everything that the stack of the tree shows of a process: resident memory
// and page tables. 0 while the process does not run.
[[nodiscard]] std::vector<Layer> process_layers(const Trace& trace);

}  // namespace lowtide

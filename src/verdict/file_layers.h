// file_layers.h - which mapped file holds how much, at every reading of a trace.
#pragma once

#include <vector>

#include "verdict/series.h"

namespace lowtide {

// Splits `mapped` (RssFile of the tree, one value per reading) into libraries, other files as
// `split` says, and the rest. If no list of files was ever read, there is one layer with all of it.
[[nodiscard]] std::vector<Layer> file_layers(const Trace& trace, const Column& mapped,
                                             FileSplit split);

// What the page cache holds of the files beyond what is mapped; `mapped` as above. The page cache
// is interpolated between two readings, but the mapped bytes are measured every time: where those
// exceed the interpolated value, nothing is left.
[[nodiscard]] Column unmapped_cache(const Trace& trace, const Column& mapped, FileSplit split);

// Fills a column that is known only at readings with files: a straight line between two known
// values, and the last value after them. Values that those readings found unknown stay unknown.
[[nodiscard]] Column bridged(const Trace& trace, const Column& asked);

}  // namespace lowtide

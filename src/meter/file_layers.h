// file_layers.h - which mapped file holds how much, at every reading of a trace.
#pragma once

#include <vector>

#include "meter/series.h"

namespace lowtide {

// Splits `mapped` (RssFile of the tree, one value per reading) into libraries, other files as
// `split` says, and the rest. Where no file was ever told apart there is one layer: all of it.
[[nodiscard]] std::vector<Layer> file_layers(const Trace& trace, const Column& mapped,
                                             FileSplit split);

// What the page cache holds of the files beyond what is mapped; `mapped` as above. The page cache
// is drawn on between two looks and what is mapped is measured every time: where that has grown
// past it, nothing is left.
[[nodiscard]] Column unmapped_cache(const Trace& trace, const Column& mapped, FileSplit split);

// A column that is known only at readings that asked for files, drawn on between them: a straight
// line between two that are known, the last value after them. What they told as unknown stays so.
[[nodiscard]] Column bridged(const Trace& trace, const Column& asked);

}  // namespace lowtide

// file_layers.h - which mapped file holds how much, at every reading of a trace.
#pragma once

#include <vector>

#include "meter/series.h"

namespace lowtide {

// Splits `mapped` (RssFile of the tree, one value a reading) into the largest files and the rest.
// Where no file was ever told apart there is one layer: all of it.
[[nodiscard]] std::vector<Layer> file_layers(const Trace& trace, const Column& mapped);

// A column that is known only at readings that asked for files, drawn on between them: a straight
// line between two that are known, the last value after them. What they told as unknown stays so.
[[nodiscard]] Column bridged(const Trace& trace, const Column& asked);

}  // namespace lowtide

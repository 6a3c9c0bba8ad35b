// series_parts.h - what series_of puts together: layers of files and processes, the rows that a
// picture needs, and the line of a leak. Each has a source file of its own.
#pragma once

#include <cstddef>
#include <optional>
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

// One layer per large process, in order of appearance, named like "python (pid 7)"; the others
// share one. A layer is everything that the stack of the tree shows of a process: resident memory
// and page tables. 0 while the process does not run.
[[nodiscard]] std::vector<Layer> process_layers(const Trace& trace);

// Row numbers, ascending: for each stretch of time the first row, the first unknown one and those
// with the highest and the lowest total; the last row; for each column the row with its highest
// value. All rows if there are at most max_points.
[[nodiscard]] std::vector<std::size_t> rows_to_keep(const Series& series, std::size_t max_points);

// Empty if the verdict is not a heap leak. The slope is that of the process that leaks most, or of
// all processes together if no single one leaks; the line runs through the heap of all processes.
[[nodiscard]] std::optional<TrendLine> trend_line_of(const Trace& trace);

}  // namespace lowtide

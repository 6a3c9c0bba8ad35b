// series.h - a trace as the columns that a picture draws: few points, peaks kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meter/trace.h"

namespace lowtide {

using Column = std::vector<std::optional<std::uint64_t>>;  // empty is unknown

[[nodiscard]] std::uint64_t highest(const Column& column);  // 0 where nothing is known

enum class LayerKind {
  heap,         // private memory
  unsplit,      // resident memory of a process for which only the sum is known
  page_tables,  // the tables that map it all
  shared,       // shared memory
  libraries,    // all mapped code and the files that belong to it, together
  file,         // one mapped file
  other_files,  // mapped files too small for a layer, or not told apart
  process,      // everything of one process, in the view by process
  others,       // processes too small for a layer
};

// Pages that the kernel cannot reclaim are below those that it can.
struct Layer {
  LayerKind kind = LayerKind::heap;
  std::string name;  // for a file: its path
  Column bytes;
};

struct View {
  std::vector<Layer> layers;  // from the bottom of the stack; no page is in two of them
  Column read_bytes_per_s;    // the mean since the previous point; the first is unknown
};

// A leak, drawn as a straight line over the heap layer.
struct TrendLine {
  double from_seconds = 0, to_seconds = 0;
  std::uint64_t from_bytes = 0, to_bytes = 0;
  std::string words;  // "leak: 12.3 +- 0.4 MiB/s"
};

struct Series {
  std::vector<double> seconds;  // one per point, ascending
  double end_seconds = 0;       // of the run; at least the last point
  View tree;                    // all processes
  View root;                    // only the first process; its files are not separated
  View processes;               // the tree again, process by process
  bool has_children = false;  // if false, root and processes are empty: they would repeat the tree
  // What the page cache holds of the files but no process maps. It is on top of every stack, so the
  // cache is never drawn below its mapped part.
  Column unmapped_cache;
  Column limit;  // of the memory group; unknown if there is none
  std::optional<TrendLine> trend;
};

// How mapped files are separated into layers.
enum class FileSplit {
  each,  // the largest ones by name
  // One layer for all data. Files are read rarely, but libraries hardly change, so data is what is
  // mapped minus the libraries. Only the data's page cache counts.
  data,
};

// At most max_points + 40 points. The highest and the lowest total of every stretch of time and the
// highest value of every column are kept. Files are read rarely: between two readings their parts
// follow a straight line and never add up to more than what the processes map; the rest is
// other_files. A layer that is always 0 is left out.
[[nodiscard]] Series series_of(const Trace& trace, std::size_t max_points,
                               FileSplit split = FileSplit::each);

// The sum of the layers at one point; unknown if no layer is known.
[[nodiscard]] std::optional<std::uint64_t> total_at(const View& view, std::size_t point);

}  // namespace lowtide

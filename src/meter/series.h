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
  unsplit,      // resident, of a process that tells only the sum
  page_tables,  // the tables that map it all
  shared,       // shared memory
  libraries,    // mapped code and what comes with it, all of it together
  file,         // one mapped file
  other_files,  // mapped files too small for a layer, or not told apart
  process,      // all of one process, where a view tells processes apart
  others,       // processes too small for a layer
};

// Pages that the kernel cannot take back lie below those that it can.
struct Layer {
  LayerKind kind = LayerKind::heap;
  std::string name;  // of a file: its path
  Column bytes;
};

struct View {
  std::vector<Layer> layers;  // from the bottom of the stack; no page is in two of them
  Column read_bytes_per_s;    // the mean since the point before; the first is unknown
};

// A leak as a straight line over the layer of the heap.
struct TrendLine {
  double from_seconds = 0, to_seconds = 0;
  std::uint64_t from_bytes = 0, to_bytes = 0;
  std::string words;  // "leak: 12.3 +- 0.4 MiB/s"
};

struct Series {
  std::vector<double> seconds;  // one for each point, ascending
  double end_seconds = 0;       // of the run; at least the last point
  View tree;                    // all processes
  View root;                    // the first process alone; its files are not told apart
  View processes;               // the tree again, process by process
  bool has_children = false;    // else root and processes are empty: they would be the tree again
  // What the page cache holds of the files and no process maps. It lies on top of every stack: so
  // the cache is never drawn below what is mapped of it.
  Column unmapped_cache;
  Column limit;  // of the memory group; unknown where there is none
  std::optional<TrendLine> trend;
};

// How mapped files are told apart.
enum class FileSplit {
  each,  // the largest ones by name
  // Files are looked at rarely and libraries hardly change: what is mapped and no library is data,
  // one layer. Of the page cache, only that of data counts.
  data,
};

// At most max_points + 40 points. The highest and the lowest total of every stretch of time and the
// highest value of every column stay. Files are looked at rarely: their parts between two looks lie
// on a straight line, never add up to more than what the processes map, and what is left is
// other_files. A layer that is 0 all the time is left out.
[[nodiscard]] Series series_of(const Trace& trace, std::size_t max_points,
                               FileSplit split = FileSplit::each);

// The sum of the layers at one point; unknown where no layer is known.
[[nodiscard]] std::optional<std::uint64_t> total_at(const View& view, std::size_t point);

}  // namespace lowtide

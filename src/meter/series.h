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

enum class LayerKind {
  heap,         // private memory
  unsplit,      // resident, of a process that tells only the sum
  page_tables,  // the tables that map it all
  shared,       // shared memory
  file,         // one mapped file
  other_files,  // mapped files too small for a layer, or not told apart
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

struct Series {
  std::vector<double> seconds;  // one for each point, ascending
  double end_seconds = 0;       // of the run; at least the last point
  View tree;                    // all processes
  View root;                    // the first process alone; its files are not told apart
  bool has_children = false;    // else root is empty: it would be the tree again
  // The page cache of the files: not in the stack, because mapped pages are part of it.
  Column cached;
  Column limit;  // of the memory group; unknown where there is none
};

// At most max_points + 40 points. The highest and the lowest total of every stretch of time and the
// highest value of every column stay. Files are looked at rarely: their parts between two looks lie
// on a straight line, never add up to more than what the processes map, and what is left is
// other_files.
[[nodiscard]] Series series_of(const Trace& trace, std::size_t max_points);

// The sum of the layers at one point; unknown where no layer is known.
[[nodiscard]] std::optional<std::uint64_t> total_at(const View& view, std::size_t point);

}  // namespace lowtide

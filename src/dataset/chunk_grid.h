// chunk_grid.h - where the bytes of an array are that is stored in chunks, as in HDF5 and zarr.
//
// All chunks have the same shape and hold their elements in C order. One at an edge is stored
// whole, with padding beyond the end of the array. One that was never written has no place in any
// file: every element of it is the fill value. Immutable, any thread.
//
// Everything is asked in bytes of the array as if it were one range in C order. Such a range
// consists of runs, each contiguous in one chunk. Lines are the longest ranges of the array that
// are cut along one axis only. A line is a row of a matrix whose chunks do not span whole rows, and
// all of the array if they do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/extent.h"
#include "core/shards.h"
#include "format/layout.h"

namespace lowtide {

// What a file says about its chunks, in the C order of the grid that they make.
struct ChunkTable {
  static constexpr std::uint64_t kAbsent = UINT64_MAX;  // an offset: the chunk was never written

  std::vector<std::uint64_t> chunk_shape = {};    // as many axes as the array has
  std::vector<std::uint64_t> offsets_bytes = {};  // of each chunk in its shard
  std::vector<std::uint32_t> shards = {};         // the shard of each; empty: all are in shard 0
  std::vector<std::byte> fill = {};               // one element or sub-array; empty: zeros
};

// An array in chunks, and where they are.
struct LocatedArray {
  Layout layout;
  ChunkTable table;
  std::shared_ptr<Shards> shards = std::make_shared<Shards>();  // at least one
  std::string path;  // of all files together, if there is one
};

class ChunkGrid {
 public:
  // Bytes of a row: the part of it that one run holds.
  struct Part {
    std::uint64_t offset_bytes, size_bytes;
  };

  // Requires layout.data_bytes > 0. Throws FormatError, which names the first shard, for a table
  // that contradicts the layout and for a chunk that exceeds its shard.
  ChunkGrid(const Layout& layout, ChunkTable table, const Shards& shards);

  // How many chunks an array of this shape has. Throws FormatError, which names `path`, for more
  // than 2^32, and unless `chunk_shape` has as many axes as `shape`, all longer than 0.
  [[nodiscard]] static std::uint64_t count(const std::vector<std::uint64_t>& shape,
                                           const std::vector<std::uint64_t>& chunk_shape,
                                           const std::string& path);

  [[nodiscard]] std::uint64_t chunks() const { return table_.offsets_bytes.size(); }
  [[nodiscard]] std::uint64_t held_bytes() const;

  // How many runs every row has; 1 if chunks span whole rows.
  [[nodiscard]] std::uint64_t parts() const { return parts_; }
  [[nodiscard]] Part part(std::uint64_t number) const;
  // The most runs that a range of this many bytes has, and about how long they are.
  [[nodiscard]] std::uint64_t most_runs(std::uint64_t size_bytes) const;
  [[nodiscard]] std::uint64_t mean_run_bytes() const { return line_bytes_ / blocks_; }

  // Appends the reads that bring bytes [first_bytes, first_bytes + size_bytes) of the array to
  // `target`, each at most `most_bytes` long, with shards numbered from `first_shard`. Fill values
  // are copied at once.
  void locate(std::uint64_t first_bytes, std::uint64_t size_bytes, std::uint64_t most_bytes,
              std::uint32_t first_shard, std::byte* target, std::vector<Read>& out) const;

 private:
  // An axis outside of the lines.
  struct Axis {
    std::uint64_t extent, chunk_extent;
    std::uint64_t chunk_step;  // in the table, from one chunk to the next along this axis
    std::uint64_t step_bytes;  // in a chunk, from one entry to the next along this axis
  };

  void check(const Layout& layout, const Shards& shards) const;
  void fill(std::uint64_t first_bytes, std::uint64_t size_bytes, std::byte* target) const;

  ChunkTable table_;
  std::vector<Axis> outer_;
  std::uint64_t line_bytes_ = 0;
  std::uint64_t block_bytes_ = 0;  // what a chunk has of a line; the last one may have less
  std::uint64_t blocks_ = 0;       // of a line, one per chunk
  std::uint64_t chunk_bytes_ = 0;
  std::uint64_t parts_ = 1;
};

}  // namespace lowtide

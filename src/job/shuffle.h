// shuffle.h - a shuffle as its tasks see it.
//
// Output position p holds unit order(p). Positions are divided into shards, one per gather task,
// and shards into buckets, each so small that it fits into memory. A scatter task reads a range of
// the source and sorts its units by bucket into one run file. A gather task reads bucket after
// bucket from all run files and puts the units into their places. Both passes read and write large
// consecutive pieces. No unit numbers are stored: a run holds the units of a bucket in the order of
// the source, and the order says which these are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/budget.h"
#include "job/folder.h"
#include "job/units.h"
#include "job/watch.h"
#include "lowtide/jobs.h"
#include "order/order.h"

namespace lowtide {

struct Range {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t size() const { return end - first; }
};

// Part `index` of `parts` almost equal parts of 0 .. size - 1; the first ones are the longer ones.
[[nodiscard]] inline Range equal_part(std::uint64_t size, std::uint64_t parts,
                                      std::uint64_t index) {
  const std::uint64_t each = size / parts;
  const std::uint64_t longer = size % parts;
  const std::uint64_t first = each * index + std::min(index, longer);
  return {first, first + each + (index < longer ? 1 : 0)};
}

// How output positions are divided. Immutable.
struct Buckets {
  std::uint64_t positions = 0;
  std::uint64_t shards = 1;
  std::uint64_t bucket_units = 1;  // the last bucket of a shard may be smaller

  [[nodiscard]] std::uint64_t per_shard() const {
    const std::uint64_t most = (positions + shards - 1) / shards;
    return (most + bucket_units - 1) / bucket_units;
  }
  [[nodiscard]] std::uint64_t count() const { return per_shard() * shards; }
  [[nodiscard]] Range shard(std::uint64_t index) const {
    return equal_part(positions, shards, index);
  }
  [[nodiscard]] Range bucket(std::uint64_t index) const {
    const Range all = shard(index / per_shard());
    const std::uint64_t first = std::min(all.end, all.first + index % per_shard() * bucket_units);
    return {first, std::min(all.end, first + bucket_units)};
  }
};

struct Shuffle {
  JobSource source;
  std::uint64_t stamp = 0;  // of the source
  Unit unit = Unit::row;
  std::uint64_t block_size = 0;
  std::uint64_t seed = 0;
  std::uint64_t memory_bytes = 0;  // of the plan; a task may have less
  UnitShape shape;
  std::uint64_t splits = 1;
  Buckets buckets;
  std::string suffix;  // of output files
  std::string format;  // of documents; empty otherwise
  JobFolder folder;

  [[nodiscard]] std::uint64_t shards() const { return buckets.shards; }
  [[nodiscard]] bool makes_folder() const { return shards() > 1 || !source.offsets.empty(); }
  [[nodiscard]] std::string run_path(std::uint64_t task) const;
  // What a gather task makes: the data, then an index or offsets if there are any. They are under
  // `root`: the destination, or where a folder grows that will get this name.
  [[nodiscard]] std::vector<std::string> parts(std::uint64_t shard, const std::string& root) const;
  [[nodiscard]] std::vector<std::string> parts(std::uint64_t shard) const {
    return parts(shard, makes_folder() ? folder.result() : folder.destination().path);
  }
  // The job folder and, for a result that is a folder, those in which its parts grow.
  void make_folders() const;
};

// How a task divides its memory.
struct ScatterMemory {
  std::uint64_t source_bytes, output_bytes, dirty_chunk_bytes, segment_bytes, index_bytes;
  std::uint64_t segment_units;  // at most
  [[nodiscard]] std::vector<Budget::Entry> entries(const Shuffle& shuffle) const;
};
[[nodiscard]] ScatterMemory scatter_memory(const Shuffle& shuffle, std::uint64_t memory_bytes);

struct GatherMemory {
  std::uint64_t source_bytes, output_bytes, dirty_chunk_bytes;
  std::uint64_t token_writer_bytes;  // of documents, instead of the buffers
  // Without what buckets are read into: that takes all the rest.
  [[nodiscard]] std::vector<Budget::Entry> entries(const Shuffle& shuffle) const;
};
[[nodiscard]] GatherMemory gather_memory(const Shuffle& shuffle, std::uint64_t memory_bytes);

// Chooses splits and bucket_units for the memory of the shuffle. Throws std::invalid_argument if it
// is too small.
void divide(Shuffle* shuffle);

// The tasks. They throw as Plan::run_task; output that exists is made again.
void scatter(const Shuffle& shuffle, std::uint64_t task, std::uint64_t memory_bytes,
             JobWatch& watch);
void gather(const Shuffle& shuffle, std::uint64_t shard, std::uint64_t memory_bytes,
            JobWatch& watch);

}  // namespace lowtide

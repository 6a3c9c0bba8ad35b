#include <bit>

#include "core/checked.h"
#include "engine/engine.h"
#include "job/bucket.h"
#include "job/run_file.h"
#include "job/shuffle.h"
#include "lowtide/bytes.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kMostSegmentBytes = 1024 * kMiB;
// Of the memory, for the units of one bucket: so two tasks fit side by side, or one with the next
// bucket on its way.
constexpr std::uint64_t kBucketShare = 5;
// A chunk is what one read brings. Below this, the disk would do nothing but seek.
constexpr std::uint64_t kLeastChunkBytes = kKiB;
constexpr std::uint64_t kSplitBytes = 256 * kMiB;
constexpr std::uint64_t kManySplits = 1024;

std::uint64_t blocks(std::uint64_t bytes, std::uint64_t least, std::uint64_t most) {
  return round_down(std::clamp(bytes, least, most), WriteFile::kBlockBytes);
}

std::uint64_t mean_bytes(const UnitShape& shape) {
  return shape.total_bytes / std::max<std::uint64_t>(1, shape.units) + shape.extra_bytes();
}

// What a scatter task holds for each unit of a segment: its bucket, its place among the sorted
// ones and, if ragged, where it starts.
std::uint64_t unit_table_bytes(const UnitShape& shape) {
  return 2 * sizeof(std::uint32_t) + (shape.ragged ? Units::kTableBytes : 0);
}

// The room for one unit, in which a window has one token more than it advances.
std::uint64_t least_segment_bytes(const UnitShape& shape) {
  return round_up(std::max<std::uint64_t>(shape.largest_bytes, 1), 4096);
}

// Returns false if the memory of the shuffle is too small.
bool divide_within(Shuffle* shuffle) {
  const UnitShape& shape = shuffle->shape;
  const std::uint64_t memory = shuffle->memory_bytes;
  const std::uint64_t total = shape.total_bytes + shape.units * shape.extra_bytes();
  const std::uint64_t most_units = (shape.units + shuffle->shards() - 1) / shuffle->shards();
  const unsigned index_bits =
      std::min(32U, 63U - static_cast<unsigned>(std::bit_width(shape.units)));
  shuffle->buckets.positions = shape.units;
  shuffle->buckets.bucket_units = std::clamp<std::uint64_t>(
      memory / kBucketShare / (mean_bytes(shape) + Places::kUnitBytes), 1,
      std::max<std::uint64_t>(1, std::min(most_units, std::uint64_t{1} << index_bits)));
  const std::uint64_t split =
      std::max(std::min(kSplitBytes, 2 * memory), std::min(2 * memory, total / kManySplits));
  shuffle->splits = std::clamp<std::uint64_t>((total + split - 1) / split, 1, shape.units);

  const ScatterMemory scattering = scatter_memory(*shuffle, memory);
  if (sum_of(scattering.entries(*shuffle)) > memory) return false;
  std::vector<Budget::Entry> gathering = gather_memory(*shuffle, memory).entries(*shuffle);
  gathering.push_back(engine_buffers(memory));
  // A bucket of ragged units may need to be read in passes, through a part of the room. Units of
  // equal size must fit all together.
  const std::uint64_t unit = shape.largest_bytes + shape.extra_bytes();
  const std::uint64_t room =
      shape.ragged ? unit + unit / 4 + 4096 : shuffle->buckets.bucket_units * shape.item_bytes;
  gathering.push_back({.what = "a bucket", .bytes = round_up(room, 4096) + 4096});
  // A segment of ragged units may be half full.
  const std::uint64_t segments = shuffle->splits + 2 * total / scattering.segment_bytes + 1;
  gathering.push_back(
      {.what = "where chunks are", .bytes = 2 * segments * BucketRead::kChunkBytes});
  if (sum_of(gathering) > memory) return false;
  // Both passes read and write pieces that are worth a seek, unless no bucket is cut.
  const std::uint64_t buckets = shuffle->buckets.count();
  return buckets <= shuffle->shards() || scattering.segment_bytes / buckets >= kLeastChunkBytes;
}

}  // namespace

std::string Shuffle::run_path(std::uint64_t task) const {
  std::string number = std::to_string(task);
  number.insert(0, 6 - std::min<std::size_t>(6, number.size()), '0');
  return folder.path() + "/run-" + number;
}

ScatterMemory scatter_memory(const Shuffle& shuffle, std::uint64_t memory_bytes) {
  ScatterMemory sizes{};
  // An array needs room for one row.
  sizes.source_bytes = std::max(std::clamp(memory_bytes / 8, kLeastSourceBytes, 32 * kMiB),
                                kLeastSourceBytes + shuffle.shape.item_bytes);
  sizes.output_bytes = blocks(memory_bytes / 16, 16 * kKiB, 4 * kMiB);
  sizes.dirty_chunk_bytes = blocks(memory_bytes / 64, 16 * kKiB, 4 * kMiB);
  const std::uint64_t fixed = sizes.source_bytes + sizes.output_bytes + 3 * sizes.dirty_chunk_bytes;
  const std::uint64_t rest = memory_bytes - std::min(memory_bytes, fixed);
  sizes.index_bytes = rest / 8;
  const std::uint64_t table = unit_table_bytes(shuffle.shape);
  const std::uint64_t least = least_segment_bytes(shuffle.shape);
  const std::uint64_t free = rest - sizes.index_bytes;
  const std::uint64_t units = (free - std::min(free, least)) / (mean_bytes(shuffle.shape) + table);
  sizes.segment_units = std::clamp<std::uint64_t>(units, 1, kMostSegmentBytes);
  const std::uint64_t bytes = free - std::min(free, sizes.segment_units * table);
  sizes.segment_bytes = std::max(least, blocks(bytes, 4096, kMostSegmentBytes));
  return sizes;
}

std::vector<Budget::Entry> ScatterMemory::entries(const Shuffle& shuffle) const {
  return {{.what = "reading the source", .bytes = source_bytes},
          {.what = "the write buffer", .bytes = output_bytes},
          {.what = "dirty pages", .bytes = 3 * dirty_chunk_bytes},
          {.what = "a segment of the source", .bytes = segment_bytes},
          {.what = "the buckets of its units",
           .bytes = segment_units * unit_table_bytes(shuffle.shape)},
          {.what = "the index of the run", .bytes = index_bytes}};
}

GatherMemory gather_memory(const Shuffle& shuffle, std::uint64_t memory_bytes) {
  GatherMemory sizes{};
  sizes.source_bytes = kLeastSourceBytes + shuffle.shape.item_bytes;
  sizes.output_bytes = blocks(memory_bytes / 16, 16 * kKiB, 4 * kMiB);
  sizes.dirty_chunk_bytes = blocks(memory_bytes / 64, 16 * kKiB, 4 * kMiB);
  if (shuffle.unit == Unit::document)
    sizes.token_writer_bytes = std::clamp(memory_bytes / 8, 128 * kKiB, 32 * kMiB);
  return sizes;
}

std::vector<Budget::Entry> GatherMemory::entries(const Shuffle& shuffle) const {
  const std::uint64_t files = shuffle.shape.ragged ? 2 : 1;
  const std::uint64_t table = shuffle.buckets.bucket_units * Places::kUnitBytes;
  std::vector<Budget::Entry> all{
      {.what = "reading the source", .bytes = source_bytes},
      {.what = "places of units", .bytes = table + (shuffle.shape.ragged ? table / 2 : 0)}};
  if (token_writer_bytes > 0) {
    all.push_back({.what = "the token writer", .bytes = token_writer_bytes});
  } else {
    all.push_back({.what = "write buffers", .bytes = files * output_bytes});
    all.push_back({.what = "dirty pages", .bytes = files * 3 * dirty_chunk_bytes});
  }
  return all;
}

void divide(Shuffle* shuffle) {
  if (divide_within(shuffle)) return;
  const UnitShape& shape = shuffle->shape;
  refuse_limit(shuffle->memory_bytes,
               "shuffle " + std::to_string(shape.units) + " " +
                   std::string(unit_word(shuffle->unit)) + "s of " +
                   format_bytes(shape.total_bytes) + " together, the largest of " +
                   format_bytes(shape.largest_bytes),
               [tried = *shuffle](std::uint64_t memory) mutable {
                 tried.memory_bytes = memory;
                 return divide_within(&tried);
               });
}

}  // namespace lowtide

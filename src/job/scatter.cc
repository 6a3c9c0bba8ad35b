#include <algorithm>
#include <array>
#include <stdexcept>

#include "job/run_file.h"
#include "job/shuffle.h"
#include "os/memory.h"
#include "os/paths.h"
#include "token_format/token_source.h"

namespace lowtide {
namespace {

constexpr std::size_t kPositions = 1024;  // that are computed at a time

// Sorts loaded units by their bucket; the sort is stable.
class BucketSort {
 public:
  BucketSort(const Buckets& buckets, const Order& order)
      : buckets_(buckets), order_(order), begins_(buckets.count() + 1) {}

  // Of units first .. first + count - 1.
  void sort(std::uint64_t first, std::size_t count) {
    bucket_.resize(count);
    sorted_.resize(count);
    std::ranges::fill(begins_, 0);
    std::array<std::uint64_t, kPositions> positions;
    for (std::size_t i = 0; i < count; i += kPositions) {
      const auto some = std::span(positions).first(std::min(kPositions, count - i));
      if (!order_.positions(0, first + i, some)) throw std::logic_error("an order without inverse");
      for (std::size_t k = 0; k < some.size(); ++k) {
        bucket_[i + k] = bucket_of(some[k]);
        ++begins_[bucket_[i + k] + 1];
      }
    }
    for (std::size_t b = 1; b < begins_.size(); ++b) begins_[b] += begins_[b - 1];
    std::vector<std::uint32_t> next(begins_.begin(), begins_.end() - 1);
    for (std::size_t i = 0; i < count; ++i) {
      sorted_[next[bucket_[i]]++] = static_cast<std::uint32_t>(i);
    }
  }
  [[nodiscard]] std::span<const std::uint32_t> of(std::size_t bucket) const {
    return std::span(sorted_).subspan(begins_[bucket], begins_[bucket + 1] - begins_[bucket]);
  }

 private:
  [[nodiscard]] std::uint32_t bucket_of(std::uint64_t position) const {
    const std::uint64_t each = buckets_.positions / buckets_.shards;
    const std::uint64_t longer = buckets_.positions % buckets_.shards;
    const std::uint64_t in_longer = longer * (each + 1);
    const std::uint64_t shard =
        position < in_longer ? position / (each + 1) : longer + (position - in_longer) / each;
    const std::uint64_t at = position - (shard * each + std::min(shard, longer));
    return static_cast<std::uint32_t>(shard * per_shard_ + at / buckets_.bucket_units);
  }

  const Buckets buckets_;
  const std::uint64_t per_shard_ = buckets_.per_shard();
  const Order& order_;
  std::vector<std::uint32_t> bucket_;  // of each unit
  std::vector<std::uint32_t> sorted_;  // units by bucket
  std::vector<std::uint32_t> begins_;  // of each bucket in sorted_
};

void write_segment(const Units& units, const BucketSort& sorted, const Shuffle& shuffle,
                   RunWriter* run, JobWatch& watch) {
  const std::uint64_t buckets = shuffle.buckets.count();
  const bool ragged = shuffle.shape.ragged;
  run->begin_segment();
  std::uint64_t done_bytes = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    for (const std::uint32_t index : sorted.of(bucket)) {
      const std::span<const std::byte> bytes = units.loaded(index);
      if (ragged) {
        std::array<std::byte, sizeof(std::uint64_t)> length;
        store_little<std::uint64_t>(bytes.size(), length.data());
        run->append(length);
      }
      run->append(bytes);
      done_bytes += bytes.size();
      if (done_bytes > (1 << 20)) watch.advance(std::exchange(done_bytes, 0));
    }
    run->begin_chunk();
  }
  watch.advance(done_bytes);
}

}  // namespace

void scatter(const Shuffle& shuffle, std::uint64_t task, std::uint64_t memory_bytes,
             JobWatch& watch) {
  const ScatterMemory sizes = scatter_memory(shuffle, memory_bytes);
  Budget budget(memory_bytes);
  const std::vector<Claim> claims = budget.claim_all(sizes.entries(shuffle));
  const OpenSource source = open_same_source(shuffle.source, shuffle.stamp, sizes.source_bytes);
  Units units(source, shuffle.unit, shuffle.block_size, &shuffle.shape);
  const std::unique_ptr<Order> order = make_shuffle(shuffle.shape.units, shuffle.seed);
  const Memory room(sizes.segment_bytes, /*prefault=*/false, "a segment of the source");
  const Memory buffer(sizes.output_bytes, /*prefault=*/false, "write buffers");
  BucketSort sorted(shuffle.buckets, *order);
  shuffle.folder.make();
  RunWriter run(shuffle.run_path(task),
                {.plan = shuffle.folder.hash(), .buckets = shuffle.buckets.count()}, buffer.bytes(),
                sizes.dirty_chunk_bytes);
  // Another process did this task before the writer was ours. Its file must not be replaced: the
  // tasks that read it would take it for a changed one.
  if (path_exists(shuffle.run_path(task))) return;
  const Range all = equal_part(shuffle.shape.units, shuffle.splits, task);
  for (std::uint64_t first = all.first; first < all.end;) {
    const std::uint64_t most = std::min(sizes.segment_units, all.end - first);
    const std::size_t count = units.load(first, most, room.bytes());
    if (count == 0) {
      throw FormatError("unit " + std::to_string(first) +
                        " is larger than when the plan was made; plan again");
    }
    sorted.sort(first, count);
    write_segment(units, sorted, shuffle, &run, watch);
    first += count;
  }
  check_same(source, shuffle.stamp);
  run.publish();
}

}  // namespace lowtide

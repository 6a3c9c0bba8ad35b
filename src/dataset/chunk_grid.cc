#include "dataset/chunk_grid.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/checked.h"
#include "dataset/append_read.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 32;
constexpr std::uint64_t kMostChunkBytes = std::uint64_t{1} << 62;

std::uint64_t chunks_along(std::uint64_t extent, std::uint64_t chunk_extent) {
  return extent / chunk_extent + (extent % chunk_extent == 0 ? 0 : 1);
}

}  // namespace

std::uint64_t ChunkGrid::count(const std::vector<std::uint64_t>& shape,
                               const std::vector<std::uint64_t>& chunk_shape,
                               const std::string& path) {
  if (chunk_shape.size() != shape.size() || std::ranges::find(chunk_shape, 0U) != chunk_shape.end())
    throw FormatError(path + ": expected chunks of " + std::to_string(shape.size()) +
                      " axes, all longer than 0, found shape " + shape_text(chunk_shape));
  std::uint64_t chunks = std::ranges::find(shape, 0U) == shape.end() ? 1 : 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!checked_mul(chunks, chunks_along(shape[axis], chunk_shape[axis]), &chunks) ||
        chunks > kMostChunks) {
      throw FormatError(path + ": expected at most 2^32 chunks, found more: shape " +
                        shape_text(shape) + " in chunks of " + shape_text(chunk_shape));
    }
  }
  return chunks;
}

ChunkGrid::ChunkGrid(const Layout& layout, ChunkTable table, const Shards& shards)
    : table_(std::move(table)) {
  const std::string path = shards.path(0);
  std::vector<std::uint64_t> shape = layout.shape, chunk = table_.chunk_shape;
  const std::uint64_t chunks = count(shape, chunk, path);
  if (chunks != table_.offsets_bytes.size()) {
    throw FormatError(path + ": expected a table of " + std::to_string(chunks) + " chunks, found " +
                      std::to_string(table_.offsets_bytes.size()));
  }
  if (shape.empty()) shape = chunk = {1};
  chunk_bytes_ = layout.dtype.itemsize_bytes;
  for (const std::uint64_t extent : chunk) {
    if (!checked_mul(chunk_bytes_, extent, &chunk_bytes_) || chunk_bytes_ > kMostChunkBytes) {
      throw FormatError(path + ": expected chunks of less than 2^62 bytes, found shape " +
                        shape_text(chunk) + " of " + std::to_string(layout.dtype.itemsize_bytes) +
                        "-byte items");
    }
  }
  check(layout, shards);
  if (std::ranges::all_of(table_.fill, [](std::byte b) { return b == std::byte{0}; }))
    table_.fill.clear();

  // The innermost axes that chunks span exactly are part of every run.
  std::size_t axis = shape.size() - 1;
  std::uint64_t inner_bytes = layout.dtype.itemsize_bytes;
  for (; axis > 0 && chunk[axis] == shape[axis]; --axis) inner_bytes *= shape[axis];
  line_bytes_ = shape[axis] * inner_bytes;
  block_bytes_ = std::min(chunk[axis], shape[axis]) * inner_bytes;
  blocks_ = chunks_along(shape[axis], chunk[axis]);
  std::uint64_t chunk_step = blocks_, step_bytes = chunk[axis] * inner_bytes;
  for (std::size_t outer = axis; outer-- > 0;) {
    outer_.insert(outer_.begin(), {shape[outer], chunk[outer], chunk_step, step_bytes});
    chunk_step *= chunks_along(shape[outer], chunk[outer]);
    step_bytes *= chunk[outer];
    if (outer > 0) parts_ *= shape[outer];
  }
  if (axis > 0) parts_ *= blocks_;
}

void ChunkGrid::check(const Layout& layout, const Shards& shards) const {
  const std::uint64_t item_bytes = layout.dtype.itemsize_bytes;
  if (!table_.fill.empty() &&
      (table_.fill.size() % item_bytes != 0 || layout.data_bytes % table_.fill.size() != 0)) {
    throw FormatError(shards.path(0) + ": expected a fill value of " + std::to_string(item_bytes) +
                      " bytes, found " + std::to_string(table_.fill.size()));
  }
  if (!table_.shards.empty() && table_.shards.size() != table_.offsets_bytes.size()) {
    throw FormatError(shards.path(0) + ": expected a file for each of " +
                      std::to_string(table_.offsets_bytes.size()) + " chunks, found " +
                      std::to_string(table_.shards.size()));
  }
  for (std::size_t i = 0; i < table_.offsets_bytes.size(); ++i) {
    const std::uint64_t offset = table_.offsets_bytes[i];
    if (offset == ChunkTable::kAbsent) continue;
    const std::uint32_t shard = table_.shards.empty() ? 0 : table_.shards[i];
    if (shard >= shards.size()) {
      throw FormatError(shards.path(0) + ": chunk " + std::to_string(i) + " is in file " +
                        std::to_string(shard) + ", but there are only " +
                        std::to_string(shards.size()));
    }
    const std::uint64_t file_bytes = shards.size_bytes(shard);
    if (fits_inside(offset, chunk_bytes_, file_bytes)) continue;
    throw FormatError(shards.path(shard) + ": expected " + std::to_string(chunk_bytes_) +
                      " bytes of chunk " + std::to_string(i) + " at byte " +
                      std::to_string(offset) + ", found " +
                      std::to_string(file_bytes - std::min(file_bytes, offset)) +
                      " bytes (the file has " + std::to_string(file_bytes) + " bytes)");
  }
}

std::uint64_t ChunkGrid::held_bytes() const {
  return table_.offsets_bytes.capacity() * sizeof(table_.offsets_bytes[0]) +
         table_.shards.capacity() * sizeof(table_.shards[0]) + table_.fill.capacity();
}

ChunkGrid::Part ChunkGrid::part(std::uint64_t number) const {
  const std::uint64_t block = number % blocks_;
  return {number / blocks_ * line_bytes_ + block * block_bytes_,
          std::min(block_bytes_, line_bytes_ - block * block_bytes_)};
}

std::uint64_t ChunkGrid::most_runs(std::uint64_t size_bytes) const {
  const std::uint64_t lines = outer_.empty() ? 1 : size_bytes / line_bytes_ + 2;
  std::uint64_t runs = 0;
  const bool fits = checked_mul(lines, std::min(blocks_, size_bytes / block_bytes_ + 2), &runs);
  return fits ? runs : UINT64_MAX;
}

void ChunkGrid::locate(std::uint64_t first_bytes, std::uint64_t size_bytes,
                       std::uint64_t most_bytes, std::uint32_t first_shard, std::byte* target,
                       std::vector<Read>& out) const {
  while (size_bytes > 0) {
    std::uint64_t line = outer_.empty() ? 0 : first_bytes / line_bytes_;
    const std::uint64_t in_line = first_bytes - line * line_bytes_;
    const std::uint64_t block = in_line / block_bytes_;
    const std::uint64_t in_block = in_line - block * block_bytes_;
    std::uint64_t here = std::min(block_bytes_, line_bytes_ - block * block_bytes_) - in_block;
    here = std::min({here, size_bytes, most_bytes});
    std::uint64_t chunk = block, inside = in_block;
    for (std::size_t axis = outer_.size(); axis-- > 0;) {
      const Axis& outer = outer_[axis];
      const std::uint64_t left = axis == 0 ? 0 : line / outer.extent;
      const std::uint64_t at = line - left * outer.extent;
      chunk += at / outer.chunk_extent * outer.chunk_step;
      inside += at % outer.chunk_extent * outer.step_bytes;
      line = left;
    }
    const std::uint64_t offset = table_.offsets_bytes[chunk];
    if (offset == ChunkTable::kAbsent) {
      fill(first_bytes, here, target);
    } else {
      const std::uint32_t shard = table_.shards.empty() ? 0 : table_.shards[chunk];
      append_read(first_shard + shard, offset + inside, here, target, out);
    }
    first_bytes += here;
    target += here;
    size_bytes -= here;
  }
}

void ChunkGrid::fill(std::uint64_t first_bytes, std::uint64_t size_bytes, std::byte* target) const {
  if (table_.fill.empty()) {
    std::memset(target, 0, size_bytes);
    return;
  }
  const std::uint64_t period = table_.fill.size(), phase = first_bytes % period;
  std::uint64_t done = 0;
  for (; done < std::min(period, size_bytes); ++done) {
    target[done] = table_.fill[(phase + done) % period];
  }
  while (done < size_bytes) {
    const std::uint64_t now = std::min(done, size_bytes - done);
    std::memcpy(target + done, target, now);
    done += now;
  }
}

}  // namespace lowtide

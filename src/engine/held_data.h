// held_data.h - all bytes of the shards in one stretch of anonymous memory, which is filled tile
// by tile, in any order and by several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/extent.h"
#include "core/shards.h"
#include "os/memory.h"

namespace lowtide {

// Has as many bytes of memory as the shards have together, plus one byte per tile. Pages appear
// when a tile is filled. Any thread.
class HeldData {
 public:
  // One huge page: the first byte that is written to it costs as much as all of them.
  static constexpr std::uint64_t kTileBytes = 2 * 1024 * 1024;

  // Throws NoMemory.
  explicit HeldData(const Shards& shards);

  [[nodiscard]] std::uint64_t size_bytes() const noexcept { return memory_.size(); }
  [[nodiscard]] std::uint64_t tiles() const noexcept { return filled_.size(); }

  // Appends the reads that bring a tile into this memory. Only one thread may fill a tile.
  void locate_tile(std::uint64_t tile, std::vector<Read>& out) const;
  // Reports that these reads have ended well.
  void tile_filled(std::uint64_t tile) noexcept;

  // Whether every tile is filled.
  [[nodiscard]] bool whole() const noexcept {
    return tiles_left_.load(std::memory_order_acquire) == 0;
  }
  // Whether all bytes of the extent are here. False for one that ends beyond its shard: a reader of
  // the shard will report what is wrong with it.
  [[nodiscard]] bool has(const Extent& extent) const noexcept;
  // Copies reads of which has() is true.
  void copy(std::span<const Read> reads) const noexcept;

 private:
  [[nodiscard]] std::uint64_t begin_bytes(const Extent& extent) const noexcept {
    return starts_bytes_[extent.shard] + extent.offset_bytes;
  }
  void prefetch(const Extent& extent) const noexcept;

  std::vector<std::uint64_t> starts_bytes_;  // of each shard in the memory, and the end
  Memory memory_;
  std::vector<std::atomic<char>> filled_;  // by tile
  std::atomic<std::uint64_t> tiles_left_{0};
};

}  // namespace lowtide

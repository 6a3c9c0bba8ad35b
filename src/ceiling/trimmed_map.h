// trimmed_map.h - one map and the state of its pages: how many may be resident, when to count them,
// and how to trim them.
//
// Between two exact counts an upper bound is kept: every 2 MiB slab announced since then counts
// in full, because one touched byte can map a whole folio. The pages are counted only when the
// bound exceeds the limit, and the map is trimmed only when the count is close to it. A trim always
// zaps the whole map, because zapping slices leaves more behind than it saves. The Registry's lock
// guards every instance.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ceiling/drop_behind.h"
#include "system/mapped_pages.h"

namespace lowtide {

class TrimmedMap {
 public:
  static constexpr std::uint64_t kSlabBytes = DropBehind::kSlabBytes;
  static constexpr std::uint64_t kLeastLimitBytes = 4 * kSlabBytes;

  // `drop` may be nullptr; the page cache is then kept.
  TrimmedMap(void* address, std::uint64_t size_bytes, std::uint64_t file_offset_bytes,
             std::uint64_t memory_bytes, std::unique_ptr<DropBehind> drop);

  // As in Ceiling.
  void touch(const void* at, std::uint64_t size_bytes) noexcept;
  void touch_anywhere(std::uint64_t touches) noexcept;
  void lend(std::uint64_t bytes) noexcept;
  int trim() noexcept;

  // Counts the pages, and trims if they exceed the limit. The last announcement of another thread
  // stays counted, because that thread may be about to read it.
  void account(PageCounter& counter) noexcept;

  // Whether all of it may be resident, so that it never needs a trim.
  [[nodiscard]] bool fits() const { return size_bytes_ <= limit_bytes_; }
  [[nodiscard]] bool drops() const { return drop_ != nullptr; }
  [[nodiscard]] std::uint64_t limit_bytes() const { return limit_bytes_; }
  // How much more may be announced before the pages must be counted again.
  [[nodiscard]] std::uint64_t headroom_bytes() const {
    return bound_bytes_ < limit_bytes_ ? limit_bytes_ - bound_bytes_ : 0;
  }
  // How much more could become resident, as of the last count.
  [[nodiscard]] std::uint64_t spare_bytes() const {
    return counted_bytes_ < limit_bytes_ ? limit_bytes_ - counted_bytes_ : 0;
  }
  [[nodiscard]] std::optional<std::uint64_t> entered_bytes() const noexcept;
  [[nodiscard]] std::uint64_t trims() const { return trims_; }
  [[nodiscard]] int refused() const { return refused_; }

 private:
  // Marks slabs first .. last of the map as announced; returns the bytes of those that were not.
  [[nodiscard]] std::uint64_t mark(std::uint64_t first, std::uint64_t last) noexcept;
  void forget_windows() noexcept;
  void make_room(std::uint64_t bytes) noexcept;

  void* const address_;
  const std::uint64_t size_bytes_;
  const std::uint64_t into_slab_bytes_;  // the map's offset in its first slab of the file
  const std::uint64_t memory_bytes_;
  std::uint64_t limit_bytes_;  // memory_bytes_ minus what is lent
  std::unique_ptr<DropBehind> drop_;
  std::vector<bool> announced_;                  // by slab, since the last count
  std::uint64_t last_first_ = 0, last_end_ = 0;  // the slabs of the last announcement
  std::uint64_t counted_bytes_ = 0;
  std::uint64_t bound_bytes_ = 0;  // at most this much of what was announced is resident
  std::uint64_t trims_ = 0;
  int refused_ = 0;
};

}  // namespace lowtide

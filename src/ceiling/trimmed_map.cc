#include "ceiling/trimmed_map.h"

#include <algorithm>
#include <utility>

namespace lowtide {

TrimmedMap::TrimmedMap(void* address, std::uint64_t size_bytes, std::uint64_t file_offset_bytes,
                       std::uint64_t memory_bytes, std::unique_ptr<DropBehind> drop)
    : address_(address),
      size_bytes_(size_bytes),
      into_slab_bytes_(file_offset_bytes % kSlabBytes),
      memory_bytes_(memory_bytes),
      limit_bytes_(std::max(memory_bytes, kLeastLimitBytes)),
      drop_(std::move(drop)),
      announced_((into_slab_bytes_ + size_bytes + kSlabBytes - 1) / kSlabBytes) {}

// Slabs are aligned to the file, not to the map, because that is how the page cache aligns folios.
void TrimmedMap::touch(const void* at, std::uint64_t size_bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address_);
  const auto from = reinterpret_cast<std::uintptr_t>(at);
  if (size_bytes == 0 || from < begin || from - begin >= size_bytes_) return;
  const std::uint64_t offset = from - begin;
  const std::uint64_t size = std::min<std::uint64_t>(size_bytes, size_bytes_ - offset);
  const std::uint64_t first = (into_slab_bytes_ + offset) / kSlabBytes;
  const std::uint64_t last = (into_slab_bytes_ + offset + size - 1) / kSlabBytes;
  if ((last - first + 1) * kSlabBytes > limit_bytes_) {
    // No trim can make room for this. The thread trims behind the reader; the next announcement
    // finds no headroom and counts the pages exactly.
    bound_bytes_ = std::max(bound_bytes_, limit_bytes_);
    return;
  }
  std::uint64_t fresh_bytes = mark(first, last);
  if (fresh_bytes > headroom_bytes()) {
    make_room(fresh_bytes);
    fresh_bytes = mark(first, last);  // again: making room has forgotten all slabs
  }
  bound_bytes_ += fresh_bytes;
  last_first_ = first;
  last_end_ = last + 1;
}

void TrimmedMap::touch_anywhere(std::uint64_t touches) noexcept {
  const std::uint64_t most = limit_bytes_ / kSlabBytes;
  const std::uint64_t bytes = std::min(touches, most) * kSlabBytes;
  if (bytes > headroom_bytes()) make_room(bytes);
  bound_bytes_ += bytes;
}

void TrimmedMap::lend(std::uint64_t bytes) noexcept {
  limit_bytes_ = std::max(memory_bytes_ - std::min(memory_bytes_, bytes), kLeastLimitBytes);
}

std::uint64_t TrimmedMap::mark(std::uint64_t first, std::uint64_t last) noexcept {
  std::uint64_t fresh = 0;
  for (std::uint64_t slab = first; slab <= last; ++slab) {
    fresh += announced_[slab] ? 0 : 1;
    announced_[slab] = true;
  }
  return fresh * kSlabBytes;
}

void TrimmedMap::forget_windows() noexcept {
  std::fill(announced_.begin(), announced_.end(), false);
}

// Trims unless a quarter of the limit is left: with less room, the next count would follow at once.
// An unknown count is treated as a full map.
void TrimmedMap::make_room(std::uint64_t bytes) noexcept {
  const std::uint64_t entered = entered_bytes().value_or(limit_bytes_);
  if (entered > limit_bytes_ / 4 * 3 || entered + bytes > limit_bytes_) {
    (void)trim();
    return;
  }
  bound_bytes_ = counted_bytes_ = entered;
  forget_windows();
}

int TrimmedMap::trim() noexcept {
  const int err = give_back_pages(address_, size_bytes_);
  if (err == 0) {
    ++trims_;
  } else {
    refused_ = err;  // locked pages, for example; kept for stats()
  }
  if (drop_) drop_->drop();  // last, because the kernel never evicts a page that is still mapped
  // Also after a refusal: otherwise every announcement would try again, and be refused again.
  bound_bytes_ = counted_bytes_ = 0;
  forget_windows();
  return err;
}

void TrimmedMap::account(PageCounter& counter) noexcept {
  const std::optional<std::uint64_t> entered = counter.entered_bytes(address_, size_bytes_);
  if (entered.value_or(limit_bytes_) >= limit_bytes_) {
    (void)trim();
    // The program may be about to read what it announced last, so that still counts.
    if (last_end_ > last_first_) bound_bytes_ = mark(last_first_, last_end_ - 1);
    return;
  }
  counted_bytes_ = *entered;
  // Never lowered here: slabs that are announced but not yet touched are not in the count.
  bound_bytes_ = std::max(bound_bytes_, counted_bytes_);
}

std::optional<std::uint64_t> TrimmedMap::entered_bytes() const noexcept {
  PageCounter counter;
  return counter.entered_bytes(address_, size_bytes_);
}

}  // namespace lowtide

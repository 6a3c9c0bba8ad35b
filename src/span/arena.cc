#include "span/arena.h"

#include <algorithm>

#include "core/checked.h"

namespace lowtide {

Arena::Arena(std::size_t size_bytes)
    : memory_(round_up(std::max(size_bytes, kPageBytes), kPageBytes)),
      used_(memory_.size() / kPageBytes, 0) {}

bool Arena::run_is_free(std::size_t first, std::size_t pages, std::size_t* blocked_at) const {
  for (std::size_t page = first; page < first + pages; ++page) {
    if (used_[page] != 0) {
      *blocked_at = page;
      return false;
    }
  }
  return true;
}

std::byte* Arena::allocate(std::size_t size_bytes) {
  const std::size_t pages = (size_bytes + kPageBytes - 1) / kPageBytes;
  if (pages > used_.size()) return nullptr;
  std::size_t first = next_;
  bool wrapped = false;
  for (;;) {
    if (first + pages > used_.size()) {
      if (wrapped) return nullptr;
      wrapped = true;
      first = 0;
    }
    std::size_t blocked_at = 0;
    if (run_is_free(first, pages, &blocked_at)) break;
    first = blocked_at + 1;
    if (wrapped && first > next_) return nullptr;
  }
  std::fill_n(used_.begin() + static_cast<std::ptrdiff_t>(first), pages, char{1});
  next_ = first + pages;
  return memory_.data() + first * kPageBytes;
}

void Arena::free(std::byte* at, std::size_t size_bytes) {
  const std::size_t pages = (size_bytes + kPageBytes - 1) / kPageBytes;
  const auto first = (at - memory_.data()) / static_cast<std::ptrdiff_t>(kPageBytes);
  std::fill_n(used_.begin() + first, pages, char{0});
}

}  // namespace lowtide

#include "loader/skips.h"

#include <algorithm>
#include <utility>

namespace lowtide {

Skips::Skips(std::vector<Skip> skips) {
  std::ranges::sort(skips, {}, [](const Skip& skip) { return std::pair(skip.epoch, skip.first); });
  for (const Skip& skip : skips) {
    Skip* const last = skips_.empty() ? nullptr : &skips_.back();
    if (last != nullptr && last->epoch == skip.epoch && skip.first <= last->last) {
      last->last = std::max(last->last, skip.last);
    } else {
      skips_.push_back(skip);
    }
  }
}

void Skips::forget(std::size_t most, std::uint64_t epoch) {
  while (skips_.size() > most && skips_.front().epoch < epoch) skips_.erase(skips_.begin());
}

std::uint64_t Skips::count(std::uint64_t epoch, std::uint64_t first, std::uint64_t last) const {
  std::uint64_t skipped = 0;
  for (const Skip& skip : skips_) {
    if (skip.epoch != epoch) continue;
    const std::uint64_t end = std::min(skip.last, last);
    skipped += end - std::min(std::max(skip.first, first), end);
  }
  return skipped;
}

std::uint64_t Skips::before(std::uint64_t epoch, std::uint64_t start, std::uint64_t kept) const {
  std::uint64_t at = start + kept, skipped = 0;
  for (const Skip& skip : skips_) {
    if (skip.epoch != epoch || skip.last <= start) continue;
    const std::uint64_t first = std::max(skip.first, start);
    if (first > at) break;
    at += skip.last - first;
    skipped += skip.last - first;
  }
  return skipped;
}

std::uint64_t Skips::next(std::uint64_t epoch, std::uint64_t after) const {
  for (const Skip& skip : skips_) {
    if (skip.epoch == epoch && skip.first > after) return skip.first;
  }
  return kNone;
}

std::uint64_t Skips::next_epoch(std::uint64_t from) const {
  for (const Skip& skip : skips_) {
    if (skip.epoch >= from) return skip.epoch;
  }
  return kNone;
}

}  // namespace lowtide

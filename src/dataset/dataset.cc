#include "dataset/dataset.h"

#include <algorithm>
#include <cstring>

namespace lowtide {
namespace {

constexpr std::size_t kPrefetchAhead = 4;
constexpr std::uint64_t kPrefetchBytes = 1024;
constexpr std::uint64_t kCacheLineBytes = 64;

}  // namespace

void Dataset::deliver(std::span<const std::uint64_t> /*samples*/,
                      std::span<const std::byte* const> staged, std::byte* out) const {
  const std::uint64_t size_bytes = sample_bytes();
  const std::uint64_t prefetch = std::min(size_bytes, kPrefetchBytes);
  for (std::size_t i = 0; i < staged.size(); ++i) {
    if (i + kPrefetchAhead < staged.size()) {
      const std::byte* coming = staged[i + kPrefetchAhead];
      for (std::uint64_t at = 0; at < prefetch; at += kCacheLineBytes)
        __builtin_prefetch(coming + at);
    }
    std::memcpy(out + i * size_bytes, staged[i], size_bytes);
  }
}

void Dataset::lengths(std::span<const std::uint64_t> /*samples*/,
                      std::span<std::uint64_t> out) const {
  std::ranges::fill(out, sample_bytes());
}

void Dataset::describe(std::uint64_t samples, std::span<const std::byte> /*batch*/,
                       std::vector<Column>* columns) const {
  columns->assign(1, {.size_bytes = samples * sample_bytes()});
}

}  // namespace lowtide

#include "ceiling/drop_behind.h"

#include <algorithm>
#include <optional>

#include "os/residency.h"

namespace lowtide {

DropBehind::DropBehind(const std::string& path, std::uint64_t offset_bytes,
                       std::uint64_t size_bytes)
    : file_(path), first_slab_(offset_bytes / kSlabBytes) {
  const std::uint64_t end = (offset_bytes + size_bytes + kSlabBytes - 1) / kSlabBytes;
  had_.resize(end - first_slab_);
  ask(0, had_.size());
}

// Halves the range until a part is fully cached or not cached at all: a file that is entirely one
// or the other takes a single question.
void DropBehind::ask(std::uint64_t first, std::uint64_t end) {
  if (first == end) return;
  const std::uint64_t from = (first_slab_ + first) * kSlabBytes;
  const std::uint64_t size = (end - first) * kSlabBytes;
  const std::optional<Residency> known = residency(file_, from, size);
  if (!known || known->cached_bytes == 0) return;
  const std::uint64_t file_bytes = file_.shard().size_bytes;
  if (end - first == 1 || known->cached_bytes >= std::min(size, file_bytes - from)) {
    std::fill(had_.begin() + static_cast<std::ptrdiff_t>(first),
              had_.begin() + static_cast<std::ptrdiff_t>(end), true);
    return;
  }
  const std::uint64_t middle = first + (end - first) / 2;
  ask(first, middle);
  ask(middle, end);
}

void DropBehind::drop() noexcept {
  std::uint64_t at = 0;
  while (at < had_.size()) {
    if (had_[at]) {
      ++at;
      continue;
    }
    std::uint64_t end = at;
    while (end < had_.size() && !had_[end]) ++end;
    // Only advice: if the kernel refuses, the cache stays as it is.
    (void)file_.advise(Advice::dont_need, (first_slab_ + at) * kSlabBytes, (end - at) * kSlabBytes);
    at = end;
  }
}

}  // namespace lowtide

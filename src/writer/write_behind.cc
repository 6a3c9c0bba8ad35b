#include "writer/write_behind.h"

#include <algorithm>
#include <utility>

#include "core/checked.h"

namespace lowtide {
namespace {

// The kernel drops whole folios only. The last one of a chunk is often shared with the chunk after
// it, which drops it.
constexpr std::uint64_t kLargestFolioBytes = 2 << 20;

}  // namespace

void WriteBehind::wrote(std::uint64_t offset_bytes, std::uint64_t size_bytes,
                        std::uint64_t cached_bytes) {
  if (cached_bytes == 0) return;
  Range full;
  {
    const MutexLock lock(mutex_);
    const bool first = filling_.dirty_bytes == 0;
    filling_.first_bytes = first ? offset_bytes : std::min(filling_.first_bytes, offset_bytes);
    filling_.end_bytes = std::max(first ? 0 : filling_.end_bytes, offset_bytes + size_bytes);
    // A row makes whole pages dirty.
    filling_.dirty_bytes += std::max(cached_bytes, WriteFile::kBlockBytes);
    if (filling_.dirty_bytes < chunk_bytes_) return;
    full = std::exchange(filling_, {});
  }
  const MutexLock lock(on_its_way_mutex_);
  file_.start_write_back(full.first_bytes, full.end_bytes - full.first_bytes);
  finish(std::exchange(on_its_way_, full));
}

void WriteBehind::drain() {
  Range rest;
  {
    const MutexLock lock(mutex_);
    rest = std::exchange(filling_, {});
  }
  const MutexLock lock(on_its_way_mutex_);
  finish(std::exchange(on_its_way_, {}));
  finish(rest);
}

void WriteBehind::finish(const Range& range) {
  if (range.dirty_bytes == 0) return;
  const std::uint64_t first = round_down(range.first_bytes, kLargestFolioBytes);
  file_.finish_write_back(first, range.end_bytes - first);
}

}  // namespace lowtide

// append_read.h - adds to a set of reads, joining what is adjacent both in the file and in memory.
// Inline, because it runs once per row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/extent.h"

namespace lowtide {

// Long enough for the disk, short enough that several threads can share a batch of consecutive
// rows.
inline constexpr std::uint64_t kJoinBytes = 1024 * 1024;
inline constexpr std::uint64_t kMostReadBytes = std::uint64_t{1} << 30;

inline void append_read(std::uint32_t shard, std::uint64_t offset_bytes, std::uint64_t size_bytes,
                        std::byte* into, std::vector<Read>& out) {
  if (!out.empty()) {
    Read& last = out.back();
    if (last.from.shard == shard && last.from.end_bytes() == offset_bytes &&
        last.into + last.from.size_bytes == into &&
        last.from.size_bytes + size_bytes <= kJoinBytes) {
      last.from.size_bytes += static_cast<std::uint32_t>(size_bytes);
      return;
    }
  }
  while (size_bytes > 0) {
    const std::uint64_t now = std::min(size_bytes, kMostReadBytes);
    out.push_back({.from = {.offset_bytes = offset_bytes,
                            .size_bytes = static_cast<std::uint32_t>(now),
                            .shard = shard},
                   .into = into});
    offset_bytes += now;
    into += now;
    size_bytes -= now;
  }
}

}  // namespace lowtide

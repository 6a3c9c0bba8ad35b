// pagemap_scan.h - how /proc/self/pagemap describes the pages of this process: with PAGEMAP_SCAN
// (Linux 6.7; not in the headers of Debian 12) in stretches of pages, or read as a file with one
// entry per page.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace lowtide {

struct PageStretch {
  std::uint64_t start, end, categories;
};

struct PagemapScan {
  std::uint64_t size, flags, start, end, walk_end, stretches, stretches_length, max_pages;
  std::uint64_t inverted, all_of, any_of, told;
};

inline constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScan);
inline constexpr std::uint64_t kPageOfFile = 1 << 2, kPagePresent = 1 << 3, kPageSwapped = 1 << 4;

// The bits of an entry. A page of a private map that was copied by a write is present or swapped
// but no longer the file's. The kernel reports this to unprivileged readers too.
inline constexpr std::uint64_t kEntryPresent = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kEntrySwapped = std::uint64_t{1} << 62;
inline constexpr std::uint64_t kEntryOfFile = std::uint64_t{1} << 61;

inline bool entry_copied(std::uint64_t entry) {
  return (entry & (kEntryPresent | kEntrySwapped)) != 0 && (entry & kEntryOfFile) == 0;
}

}  // namespace lowtide

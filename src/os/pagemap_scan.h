// pagemap_scan.h - PAGEMAP_SCAN of Linux 6.7 on /proc/self/pagemap; not in the headers of Debian
// 12.
#pragma once

#include <sys/ioctl.h>

#include <cstdint>

namespace lowtide {

struct PageRun {
  std::uint64_t start, end, categories;
};

struct PagemapScan {
  std::uint64_t size, flags, start, end, walk_end, runs, runs_length, max_pages;
  std::uint64_t inverted, all_of, any_of, told;
};

inline constexpr unsigned long kPagemapScan = _IOWR('f', 16, PagemapScan);
inline constexpr std::uint64_t kPageOfFile = 1 << 2, kPagePresent = 1 << 3, kPageSwapped = 1 << 4;

}  // namespace lowtide

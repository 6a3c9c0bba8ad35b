// residency.h - how much of a file is in the page cache, from cachestat(2), and whether it can
// leave.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lowtide {

class File;

struct Residency {
  std::uint64_t cached_bytes = 0;     // rounded up to pages, never above the range
  std::uint64_t dirty_bytes = 0;      // not yet on disk
  std::uint64_t writeback_bytes = 0;  // of those, currently being written
};

// Size 0 means up to the end of the file. nullopt is *unknown*, never zero: the kernel has no
// cachestat (before 6.5), forbids it for files that we may not write, or the file is on overlayfs,
// which always reports nothing. `why`, if given, receives the reason.
[[nodiscard]] std::optional<Residency> residency(const File& file, std::uint64_t offset_bytes = 0,
                                                 std::uint64_t size_bytes = 0,
                                                 std::string* why = nullptr);

// tmpfs and similar: the file lives in the page cache, so it cannot leave it.
[[nodiscard]] bool lives_in_memory(const File& file) noexcept;
// overlayfs: the pages belong to an underlying file, so cachestat always reports that nothing is
// cached.
[[nodiscard]] bool is_overlay(const File& file) noexcept;

// Writes dirty pages to disk and waits for it. Returns 0 or an errno.
[[nodiscard]] int write_back(const File& file) noexcept;

[[nodiscard]] std::uint64_t page_bytes();

}  // namespace lowtide

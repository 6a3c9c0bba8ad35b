// eviction.h - prepares a file for eviction from the page cache, and finds what keeps it there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/limits.h"

namespace lowtide {

class File;

// Writes dirty pages to disk and waits for it. Returns 0 or an errno.
[[nodiscard]] int write_back(const File& file) noexcept;

// tmpfs and similar: the file lives in the page cache, so it cannot leave it.
[[nodiscard]] bool lives_in_memory(const File& file) noexcept;

struct Mapper {
  int pid = 0;
  std::string program;  // its short name; empty if it has ended
  bool locked = false;  // mlock: the pages stay in any case
};

struct Mappers {
  std::vector<Mapper> found;
  std::uint64_t hidden = 0;  // processes that we may not inspect
};

// Every process that maps the file, including this one, from /proc/*/maps: by device and inode, or
// by path and inode if the file system reports another device there (overlayfs, btrfs). Reads the
// maps of all processes, which takes milliseconds per process.
[[nodiscard]] Mappers mappers_of(const File& file, const SystemRoot& root = {});

}  // namespace lowtide

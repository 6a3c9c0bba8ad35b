// eviction.h - what a file needs to leave the page cache, and who keeps it there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "os/limits.h"

namespace lowtide {

class File;

// Writes what is dirty to the disk and waits for it. 0 or an errno.
[[nodiscard]] int write_back(const File& file) noexcept;

// tmpfs and its kind: the page cache is where the file is, so it cannot leave.
[[nodiscard]] bool lives_in_memory(const File& file) noexcept;

struct Mapper {
  int pid = 0;
  std::string program;  // its short name; empty where it is gone by now
  bool locked = false;  // mlock: the pages stay whatever is asked
};

struct Mappers {
  std::vector<Mapper> found;
  std::uint64_t hidden = 0;  // processes that we may not look at
};

// Every process that maps the file, this one too, from /proc/*/maps: by device and inode, or by
// path and inode where the file system shows another device there (overlayfs, btrfs). Reads the
// maps of all processes: milliseconds each.
[[nodiscard]] Mappers mappers_of(const File& file, const SystemRoot& root = {});

}  // namespace lowtide

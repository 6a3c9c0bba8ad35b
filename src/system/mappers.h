// mappers.h - which processes map a file, and so keep it in the page cache.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "system/text_file.h"

namespace lowtide {

class File;

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

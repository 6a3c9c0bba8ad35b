// maps.h - the files that a process maps, and what of each lies in the page cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "os/limits.h"
#include "os/told.h"

namespace lowtide {

// One mapping of a file, bytes. Pages that a private mapping copied belong to no file any more.
struct FileMap {
  int pid = 0;
  std::string range;  // "7f12-7f34", the mapping's name in /proc/PID/map_files
  std::string path;   // " (deleted)" taken off
  bool deleted = false;
  std::uint64_t device = 0, inode = 0;
  std::uint64_t mapped = 0;  // Rss less the copied pages
  std::uint64_t pss = 0;     // likewise: each page divided by how many processes map it
};

// /proc/PID/smaps: every mapping of a file that is not memory in disguise (memfd, SYSV, /dev/zero,
// /dev/shm), and the Pss of all mappings. The kernel walks all pages and writes a page of text for
// each mapping: milliseconds, and seconds for a process of many gigabytes. Unknown where that text
// has more than 16 MiB, some 20,000 mappings: a sum over a part of them would be wrong.
struct ProcessMaps {
  std::vector<FileMap> files;
  std::uint64_t pss = 0;
};
[[nodiscard]] Told<ProcessMaps> read_maps(const SystemRoot& root, int pid);
[[nodiscard]] ProcessMaps parse_smaps(std::string_view text, int pid);

// A file as it is now.
struct FileState {
  std::uint64_t device = 0, inode = 0;
  std::uint64_t size = 0;
  bool in_memory = false;  // tmpfs: its pages are shared memory, and no disk holds them
  ToldBytes cached;
};
// Opened by its path; "not a regular file", "no such file", ... where it cannot be.
[[nodiscard]] Told<FileState> file_state(const std::string& path);
// The file behind a mapping: as the process sees its path, or through map_files where it was
// deleted. Unknown where the path names another file by now.
[[nodiscard]] Told<FileState> file_state(const SystemRoot& root, const FileMap& map);

}  // namespace lowtide

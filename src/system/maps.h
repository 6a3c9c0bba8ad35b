// maps.h - the files that a process maps, and how much of each is in the page cache.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/known.h"
#include "system/text_file.h"

namespace lowtide {

// One mapping of a file, in bytes. Pages copied by a private mapping no longer belong to a file.
struct FileMap {
  int pid = 0;
  std::string range;  // "7f12-7f34", the mapping's name in /proc/PID/map_files
  std::string path;   // without " (deleted)"
  bool deleted = false;
  std::uint64_t device = 0, inode = 0;
  std::uint64_t mapped = 0;  // Rss minus the copied pages
  std::uint64_t pss = 0;     // the same, each page divided by the number of processes that map it
};

// From /proc/PID/smaps: every mapping of a file that is not just memory (memfd, SYSV, /dev/zero,
// /dev/shm), and the Pss of all mappings. The kernel walks all pages and writes a page of text per
// mapping: this takes milliseconds, or seconds for a process of many gigabytes. Unknown if the text
// exceeds 16 MiB, some 20,000 mappings, because a partial sum would be wrong.
struct ProcessMaps {
  std::vector<FileMap> files;
  std::uint64_t pss = 0;
};
[[nodiscard]] Known<ProcessMaps> read_maps(const SystemRoot& root, int pid);
[[nodiscard]] ProcessMaps parse_smaps(std::string_view text, int pid);

// The current state of a file.
struct FileState {
  std::uint64_t device = 0, inode = 0;
  std::uint64_t size = 0;
  bool in_memory = false;  // tmpfs: its pages are shared memory and are on no disk
  Figure cached;
};
// By its path; unknown with the reason ("not a regular file", "no such file") on failure.
[[nodiscard]] Known<FileState> file_state(const std::string& path);
// The file of a mapping: by its path as the process sees it, or through map_files if it was
// deleted. Unknown if the path now names another file.
[[nodiscard]] Known<FileState> file_state(const SystemRoot& root, const FileMap& map);

}  // namespace lowtide

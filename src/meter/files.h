// files.h - which regular files the processes of a tree map, and how much of each is cached.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "meter/reading.h"
#include "system/text_file.h"

namespace lowtide {

struct FilesReading {
  std::vector<FileReading> files;  // watched files first, then by mapped bytes in descending order
  std::map<int, Figure> pss;       // per process, summed over its maps
};

// Reads the maps of every process, which is expensive (maps.h). Reports the `kMostFiles` mapped
// files with the most pages, and every watched file, even if no process maps it or it cannot be
// read.
inline constexpr std::size_t kMostFiles = 24;
[[nodiscard]] FilesReading read_files(const SystemRoot& root, const std::vector<int>& pids,
                                      const std::vector<std::string>& watch);

}  // namespace lowtide

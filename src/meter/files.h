// files.h - which regular files the processes of a tree map, and what of each is cached.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "meter/reading.h"
#include "os/limits.h"

namespace lowtide {

struct FilesReading {
  std::vector<FileReading> files;  // watched ones first, then by what is mapped, the most first
  std::map<int, Figure> pss;       // of each process, as its maps tell it
};

// Reads the maps of every process: dear (maps.h). Of the mapped files the `kMostFiles` with the
// most pages are told; a watched file is always told, also where nobody maps it or it cannot be
// read.
inline constexpr std::size_t kMostFiles = 24;
[[nodiscard]] FilesReading read_files(const SystemRoot& root, const std::vector<int>& pids,
                                      const std::vector<std::string>& watch);

}  // namespace lowtide

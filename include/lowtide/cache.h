// cache.h - which parts of a file are in the page cache, and how to change that.
//
// The kernel's own calls for it return 0 whether they did anything or not. What is told here was
// looked at afterwards (cachestat), and where pages did not do as asked it is said why.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

struct CacheState {
  std::string path;
  std::uint64_t bytes = 0;
  // nullopt: unknown, see `unknown`.
  std::optional<std::uint64_t> cached_bytes;
  std::optional<std::uint64_t> dirty_bytes;  // not yet on the disk
  std::string unknown;                       // why it cannot be seen
  // The file in equal parts, in order: the share of each that is cached, 0 to 1. Empty: unknown.
  std::vector<double> parts;
};

// At most `parts` of them, each a whole number of pages. Throws IoError.
[[nodiscard]] CacheState cache_state(const std::string& path, std::uint64_t parts);

// Called from the calling thread now and then. False: stop here.
using CacheProgress = std::function<bool(std::uint64_t done_bytes, std::uint64_t all_bytes)>;

struct CacheChange {
  std::string path;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> before_bytes, after_bytes;  // cached; nullopt: unknown
  // All of it is as asked, and that was seen.
  bool done = false;
  std::vector<std::string> reasons;   // why not, if not done
  std::vector<std::string> warnings;  // before it was tried
};

// Puts the file out of the page cache: dirty pages are written first. Other readers of the file
// will read it from the disk again. Throws IoError where it cannot be opened or written back.
[[nodiscard]] CacheChange evict_file(const std::string& path, const CacheProgress& progress = {});

// Brings all of the file into the page cache, by asking ahead in slices and reading it, so that a
// disk that fails is noticed. Throws IoError.
[[nodiscard]] CacheChange warm_file(const std::string& path, const CacheProgress& progress = {});

// The files that a path of the command line stands for: itself if it exists, else the matches of a
// pattern, sorted; of a folder the files in it. Throws IoError.
[[nodiscard]] std::vector<std::string> files_of(const std::string& path);

}  // namespace lowtide

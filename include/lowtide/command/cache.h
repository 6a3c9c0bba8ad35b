// cache.h - which parts of a file are in the page cache, and how to change that.
//
// The kernel's own calls return 0 whether or not they did anything. Results here are verified
// afterwards with cachestat; if pages did not move, the reason is reported. All functions may be
// called from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

// How much of a file is cached, and which parts.
struct CacheState {
  std::string path;
  std::uint64_t bytes = 0;
  // nullopt: unknown, for the reason in `unknown`.
  std::optional<std::uint64_t> cached_bytes;
  std::optional<std::uint64_t> dirty_bytes;  // not yet written to the disk
  std::string unknown;                       // why the kernel does not report it
  // The file in equal parts, in order: the cached share of each, 0 to 1. Empty: unknown.
  std::vector<double> parts;
};

// Looks at the page cache without changing it. Divides the file into at most `parts` parts, each a
// whole number of pages. Throws IoError.
[[nodiscard]] CacheState cache_state(const std::string& path, std::uint64_t parts);

// Called from time to time on the calling thread. Returning false stops the work.
using CacheProgress = std::function<bool(std::uint64_t done_bytes, std::uint64_t all_bytes)>;

// The result of evict_file or warm_file.
struct CacheChange {
  std::string path;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> before_bytes, after_bytes;  // cached; nullopt: unknown
  // The whole file is as requested, and this was verified.
  bool done = false;
  std::vector<std::string> reasons;   // why it is not done
  std::vector<std::string> warnings;  // found before it was tried
};

// Evicts the file from the page cache. Dirty pages are written to the disk first. Other readers of
// the file will have to read it from the disk again. Throws IoError if the file cannot be opened or
// written back.
[[nodiscard]] CacheChange evict_file(const std::string& path, const CacheProgress& progress = {});

// Brings the whole file into the page cache. It issues read-ahead hints in slices and then reads
// the file, so that a disk error is noticed. Throws IoError.
[[nodiscard]] CacheChange warm_file(const std::string& path, const CacheProgress& progress = {});

// The files that a path on the command line stands for: the path itself if it is a file, the files
// in it if it is a folder, otherwise the files that match it as a pattern, sorted. Throws IoError.
[[nodiscard]] std::vector<std::string> files_of(const std::string& path);

}  // namespace lowtide

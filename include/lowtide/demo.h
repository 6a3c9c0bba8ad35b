// demo.h - a matrix read in shuffled order, by ways that are in use and by ours: what the command's
// demo runs, each way in a process of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lowtide {

inline constexpr std::uint64_t kDemoRowBytes = 648;             // 162 float32
inline constexpr std::uint64_t kDemoMemoryBytes = 32ULL << 20;  // the budget of ours

struct DemoMethod {
  std::string word;   // "mmap", "lowtide", "lowtide-drop", "mmap-dontneed", "pread"
  std::string title;  // for people
};
// The problem first, ours beside it: with its defaults, and past the page cache.
[[nodiscard]] const std::vector<DemoMethod>& demo_methods();

// Makes a new folder in `parent`; in one that lies on a disk (TMPDIR, /var/tmp) where it is empty.
// Throws IoError.
[[nodiscard]] std::string make_demo_folder(const std::string& parent);

// Called from the calling thread now and then.
using DemoProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t all_bytes)>;

// As many rows as `bytes` has room for, at least one; on the disk when it returns. Throws IoError,
// also where the disk has not the room.
void write_demo_matrix(const std::string& path, std::uint64_t bytes,
                       const DemoProgress& progress = {});

struct DemoRate {
  std::uint64_t rows = 0;
  double seconds = 0;
  // Of ours: bytes asked of the operating system, and of those the ones that were wanted. 0 of the
  // others, who read what they are asked for.
  std::uint64_t bytes_read = 0, bytes_asked = 0;
};

// Two shuffled epochs in batches of 4096 rows, the same rows whatever the method, or as much of
// them as `seconds` allow. Every row is looked at; a wrong one is a FormatError. Two methods map
// the file: it must not shrink meanwhile. `at_end` is called once, while everything is still held.
// Throws IoError, and std::invalid_argument for another word.
[[nodiscard]] DemoRate read_demo_matrix(const std::string& path, const std::string& method,
                                        double seconds, const std::function<void()>& at_end = {});

}  // namespace lowtide

// demo.h - what `lowtide demo` runs: a matrix read in shuffled order with common methods and with
// Lowtide, each in a process of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

inline constexpr std::uint64_t kDemoRowBytes = 648;             // 162 float32
inline constexpr std::uint64_t kDemoMemoryBytes = 32ULL << 20;  // the budget of Lowtide

// A way to read the matrix.
struct DemoMethod {
  std::string word;   // "mmap", "lowtide", "mmap-again", "lowtide-drop", ...
  std::string title;  // for people
};
// All methods: the problem first, then Lowtide with its defaults. The first four show the most.
[[nodiscard]] const std::vector<DemoMethod>& demo_methods();

// Makes a new folder in `parent` and returns its path. If `parent` is empty, it uses TMPDIR or
// /var/tmp, whichever is on a disk. Throws IoError.
[[nodiscard]] std::string make_demo_folder(const std::string& parent);

// The memory limit of a cgroup, which is given as its folder. Throws std::invalid_argument if there
// is none.
[[nodiscard]] std::uint64_t demo_group_limit(const std::string& folder);

// Called from time to time on the calling thread.
using DemoProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t all_bytes)>;

// Writes as many rows as fit into `bytes`, at least one. They are on the disk when it returns.
// Throws IoError, also if the disk has too little space.
void write_demo_matrix(const std::string& path, std::uint64_t bytes,
                       const DemoProgress& progress = {});

// What one method read, and how long it took.
struct DemoRate {
  std::uint64_t rows = 0;
  double seconds = 0;
  // With Lowtide: the bytes requested from the operating system, and those of them that were
  // needed. 0 with the other methods, which read only what they need.
  std::uint64_t bytes_read = 0, bytes_asked = 0;
  std::optional<std::uint64_t> disk_bytes;  // read from the disk; empty: unknown
};

// Reads two shuffled epochs in batches of 4096 rows, or as much of them as `seconds` allows. The
// rows are the same for every method. Every row is checked; a wrong one is a FormatError. Some
// methods map the file, so it must not shrink during the call. `at_end` is called once, while the
// method still holds its memory. Throws IoError, and std::invalid_argument for an unknown method.
[[nodiscard]] DemoRate read_demo_matrix(const std::string& path, const std::string& method,
                                        double seconds, const std::function<void()>& at_end = {});

}  // namespace lowtide

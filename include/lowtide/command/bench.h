// bench.h - how fast a file can be read on this disk: cold and hot, with each engine, and compared
// with what the device itself can do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/info.h"

namespace lowtide {

struct BenchOptions {
  InfoOptions file = {};           // describes a file without a header
  std::uint64_t memory_bytes = 0;  // the budget of each measurement; 0: the default
  std::uint64_t batch_size = 0;    // 0: 4096 rows or 12 windows, fewer if the budget is small
  // Measures rows of this many bytes, whatever the file is. 0: the rows of an array, windows of
  // 1025 tokens, or blocks of 4096 bytes of any other file.
  std::uint64_t row_bytes = 0;
  double seconds = 1;  // per measurement; there are up to 12
  // If too little of the file is cached for the hot measurements, brings up to warm_bytes of it
  // into the page cache and evicts afterwards what was not cached before.
  bool warm = false;
  std::uint64_t warm_bytes = 256 << 20;

  // Called before each measurement, on the thread that called bench.
  std::function<void(const std::string& what, std::uint64_t done, std::uint64_t all)> progress = {};
  // Called often, on the same thread. Returning true ends the benchmark within about one batch;
  // cells that were not measured give this as the reason.
  std::function<bool()> stop = {};
};

// One measurement. "cold" bypasses the page cache, whatever it contains. "hot" reads bytes that are
// in the page cache or that Lowtide holds.
struct BenchCell {
  std::string pattern;  // "random", "sequential"
  std::string state;    // "cold", "hot"
  std::string engine;   // "device", "uring", "pread", "memory"
  std::string how;      // what was called
  // Why it was not measured; empty if it was.
  std::string why_not;
  double seconds = 0;
  std::uint64_t samples = 0;     // delivered
  std::uint64_t bytes = 0;       // delivered
  std::uint64_t bytes_read = 0;  // requested from the operating system; "device": same as bytes
  std::uint64_t reads = 0;
  std::optional<double> samples_per_second, bytes_per_second;
  // Percent of the device's rate in the same pattern, in samples (random) or bytes (sequential).
  // Above 100 if reads were merged. nullopt: hot, or the device could not be measured.
  std::optional<double> percent_of_device;
};

// Everything that bench measured.
struct BenchReport {
  std::string path;
  std::uint64_t bytes = 0;
  std::string format;  // "npy", "nanogpt", ...; "raw" for a file that is read as plain bytes
  std::string unit;    // of a sample: "row", "window", "block"
  std::uint64_t sample_bytes = 0, samples = 0;
  std::uint64_t memory_bytes = 0, batch_size = 0;
  double seconds = 0;        // per measurement, as requested
  std::string why_no_uring;  // empty: io_uring works here
  // In the page cache before and after; nullopt: unknown, for the reason in cached_unknown.
  std::optional<std::uint64_t> cached_before_bytes, cached_after_bytes;
  std::string cached_unknown;
  // The range of the file that the hot cells were measured on; 0 bytes: none.
  std::uint64_t hot_first_bytes = 0, hot_bytes = 0;
  std::vector<BenchCell> cells;
  std::vector<std::string> notes;  // caveats for readers of the numbers
  // Why the numbers are not meaningful for this disk; empty: the file is large enough.
  std::string too_small;
  bool stopped = false;  // options.stop returned true
};

// Measures one file. Only reads it: cold measurements bypass the page cache (O_DIRECT) and leave
// nothing in it. Takes about options.seconds per cell, plus the time in which the engine "memory"
// reads the file once. Throws IoError (also for a folder or a special file), FormatError for a file
// that is empty, too small to measure or contradicts options.file, and std::invalid_argument for a
// wrong option.
[[nodiscard]] BenchReport bench(const std::string& path, const BenchOptions& options = {});

}  // namespace lowtide

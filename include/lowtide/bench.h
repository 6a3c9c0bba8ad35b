// bench.h - what a file gives on this disk: cold and hot, engine beside engine, and how much of
// what the device can do that is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/info.h"

namespace lowtide {

struct BenchOptions {
  InfoOptions file = {};           // what the file is, where it has no header that says so
  std::uint64_t memory_bytes = 0;  // the budget of what is measured; 0: the default
  std::uint64_t batch_size = 0;    // 0: 4096 rows or 12 windows, less where the budget is small
  // Rows of so many bytes, whatever the file is. 0: the rows of an array, windows of 1025 tokens,
  // blocks of 4096 bytes of anything else.
  std::uint64_t row_bytes = 0;
  double seconds = 1;  // of each measurement; there are up to 12
  // Brings a part of the file into the page cache for the hot measurements, where too little is
  // there, and puts out again what was not there before.
  bool warm = false;
  std::uint64_t warm_bytes = 256 << 20;

  // Called before each measurement, from the thread that called bench.
  std::function<void(const std::string& what, std::uint64_t done, std::uint64_t all)> progress = {};
  // Asked often, from the same thread: true ends it within about a batch. What was not measured by
  // then says so.
  std::function<bool()> stop = {};
};

// One measurement. "cold": past the page cache, whatever is in it. "hot": of bytes that are in it,
// or that Lowtide holds.
struct BenchCell {
  std::string pattern;  // "random", "sequential"
  std::string state;    // "cold", "hot"
  std::string engine;   // "device", "uring", "pread", "memory"
  std::string how;      // what was called
  // Why it was not measured; empty: it was.
  std::string why_not;
  double seconds = 0;
  std::uint64_t samples = 0;     // delivered
  std::uint64_t bytes = 0;       // delivered
  std::uint64_t bytes_read = 0;  // asked of the operating system; of "device" the same as bytes
  std::uint64_t reads = 0;
  std::optional<double> samples_per_second, bytes_per_second;
  // Of the device's rate in the same pattern: samples where random, bytes where sequential. Above
  // 100 where reads were merged. nullopt: hot, or the device could not be measured.
  std::optional<double> percent_of_device;
};

struct BenchReport {
  std::string path;
  std::uint64_t bytes = 0;
  std::string format;  // "npy", "nanogpt", ...; "raw" for bytes that are read as such
  std::string unit;    // of a sample: "row", "window", "block"
  std::uint64_t sample_bytes = 0, samples = 0;
  std::uint64_t memory_bytes = 0, batch_size = 0;
  double seconds = 0;        // asked for, of each measurement
  std::string why_no_uring;  // empty: io_uring works here
  // In the page cache before and after; nullopt: unknown, and why.
  std::optional<std::uint64_t> cached_before_bytes, cached_after_bytes;
  std::string cached_unknown;
  // What the hot cells were measured on; 0: nothing.
  std::uint64_t hot_first_bytes = 0, hot_bytes = 0;
  std::vector<BenchCell> cells;
  std::vector<std::string> notes;  // what a reader of the numbers should know
  // Why the numbers tell nothing about the disk; empty: the file is large enough.
  std::string too_small;
  bool stopped = false;  // options.stop said so
};

// Reads only. Cold measurements go past the page cache (O_DIRECT) and leave nothing in it. Takes
// about options.seconds for each cell, and what the engine "memory" needs to read the file once.
// Throws IoError (also for folders and what is no plain file), FormatError for a file that is
// empty, too small to measure, or not what options.file says; std::invalid_argument for a bad
// option.
[[nodiscard]] BenchReport bench(const std::string& path, const BenchOptions& options = {});

}  // namespace lowtide

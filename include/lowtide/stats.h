// stats.h - what was read so far and how, and the memory that is held.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lowtide {

// Where the bytes came from so far. The counters only grow; they cover everything that was done
// through one Array, Tokens or Loader.
struct Stats {
  std::uint64_t bytes_asked = 0;  // delivered to you
  std::uint64_t bytes_read = 0;   // requested from the operating system, with gaps and alignment
  std::uint64_t reads = 0;        // read requests to the operating system
  std::uint64_t merged = 0;       // reads saved because neighbours were fetched together
  std::uint64_t wait_ns = 0;      // time that your threads waited for bytes
  std::uint64_t gap_bytes = 0;    // neighbours closer than this are currently fetched together
  std::string engine;         // in use now: "pread", "uring", "pread+uring", "memory", "http", ...
  std::string engine_reason;  // why this engine
  std::string cache;          // "keep" or "drop"
  std::string cache_reason;   // why this mode
  std::string layout;         // "C", or "F: ..." with the cost of gathering rows in Fortran order
  std::uint64_t memory_limit_bytes = 0;
  std::vector<std::pair<std::string, std::uint64_t>> memory_claims;  // bytes that we hold, by name
  std::uint64_t held_by_you_bytes = 0;  // batches that you keep in addition to the current one
};

}  // namespace lowtide

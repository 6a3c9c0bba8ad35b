// bench_device.h - the speed of the device itself: plain direct reads, as fio would issue them,
// without an order, merging or batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "inspect/stopwatch.h"
#include "os/files.h"

namespace lowtide {

// Evenly spaced samples of a file.
struct SampleGrid {
  std::uint64_t first_bytes = 0;   // where the first one begins
  std::uint64_t stride_bytes = 0;  // from the start of one to the next
  std::uint64_t size_bytes = 0;    // of one sample
  std::uint64_t count = 0;
};

struct DeviceRate {
  std::string how;      // "128 direct reads of 4 KiB in flight"
  std::string why_not;  // empty: it was measured
  double seconds = 0;
  std::uint64_t reads = 0, bytes = 0;
  double samples = 0;  // how many samples the reads amount to, even if they were sequential
};

// Reads random samples, each with one read of the sectors that it touches (for a long sample, a
// part of it), or 1 MiB blocks in file order. Uses one thread with a ring, or a pool of threads if
// io_uring is not available. Throws IoError if a read fails. Requires count > 0.
[[nodiscard]] DeviceRate measure_device(const std::shared_ptr<Files>& files, const SampleGrid& grid,
                                        bool random, const TimeLimit& limit);

}  // namespace lowtide

// bench_device.h - what the device itself gives: plain direct reads, as fio would make them, with
// no order, no merging and no batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "inspect/stopwatch.h"
#include "os/files.h"

namespace lowtide {

// Samples of a file that lie one behind the other.
struct SamplePlaces {
  std::uint64_t first_bytes = 0;   // where the first begins
  std::uint64_t stride_bytes = 0;  // from one to the next
  std::uint64_t size_bytes = 0;    // of one
  std::uint64_t count = 0;
};

struct DeviceRate {
  std::string how;      // "128 direct reads of 4 KiB in flight"
  std::string why_not;  // empty: it was measured
  double seconds = 0;
  std::uint64_t reads = 0, bytes = 0;
  double samples = 0;  // that the reads would make up; of sequential reads too
};

// Drawn samples, each by one read of the sectors that it touches (of long ones a piece); or pieces
// of 1 MiB in the order of the file. One thread with a ring, or a pool of threads where io_uring
// cannot be used. Throws IoError for a read that fails. Requires count > 0.
[[nodiscard]] DeviceRate measure_device(const std::shared_ptr<Files>& files,
                                        const SamplePlaces& places, bool random,
                                        const TimeLimit& limit);

}  // namespace lowtide

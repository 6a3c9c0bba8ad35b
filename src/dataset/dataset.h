// dataset.h - WHERE a sample lies: in which bytes of which file. Immutable, no I/O, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/extent.h"

namespace lowtide {

// Samples are all of one size. A higher sample never lies before a lower one in the list of shards,
// so sorting samples sorts their reads. A sample is made of parts (one for a C-order row, one a
// column for a Fortran-order row).
class Dataset {
 public:
  virtual ~Dataset() = default;

  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;  // samples
  [[nodiscard]] virtual std::uint64_t sample_bytes() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t parts() const noexcept = 0;
  // Reads that locate makes at most for one part of one sample.
  [[nodiscard]] virtual std::uint64_t reads_per_part() const noexcept = 0;

  [[nodiscard]] virtual std::uint64_t data_bytes()
      const noexcept = 0;  // from which the samples are taken
  [[nodiscard]] virtual const std::string& path(std::uint32_t shard) const noexcept = 0;

  // Appends the reads that bring part `part` of samples[i] to targets[i]. Neighbours in both file
  // and memory become one read.
  virtual void locate(std::uint64_t part, std::span<const std::uint64_t> samples,
                      std::span<std::byte* const> targets, std::vector<Read>& out) const = 0;
};

}  // namespace lowtide

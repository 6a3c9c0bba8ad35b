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
//
// A batch is delivered as its samples were read, one behind the other, or in a form that deliver()
// makes of them.
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
  [[nodiscard]] virtual std::string path(std::uint32_t shard) const = 0;

  // Appends the reads that bring part `part` of samples[i] to targets[i]. Neighbours in both file
  // and memory become one read.
  virtual void locate(std::uint64_t part, std::span<const std::uint64_t> samples,
                      std::span<std::byte* const> targets, std::vector<Read>& out) const = 0;

  // Whether samples are delivered as they were read. Else deliver() makes the batch.
  [[nodiscard]] virtual bool as_read() const noexcept { return true; }
  // Bytes of a delivered batch of so many samples, below 2^62; requires that the product of samples
  // and sample_bytes is.
  [[nodiscard]] virtual std::uint64_t batch_bytes(std::uint64_t samples) const {
    return samples * sample_bytes();
  }
  // Makes the batch in `out` from samples that lie at staged[i]. Throws what the data deserves
  // (std::invalid_argument for a token that does not fit). Any thread.
  virtual void deliver(std::span<const std::uint64_t> samples,
                       std::span<const std::byte* const> staged, std::byte* out) const;
};

}  // namespace lowtide

// bins.h - the samples that a sweep is going to meet, in bins by where they are in the data, and
// where the sweep is.
//
// Sorting a bin just before it is taken stays in the processor's cache, and a sample can be added
// at any time: behind the sweep it waits for the next one. Samples of several parts are met once
// per part; they can be added only at the start. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lowtide {

class Bins {
 public:
  // Bytes per sample: its key, in a vector that grows by doubling, and a copy while it is sorted.
  static constexpr std::uint64_t kSampleBytes = 3 * sizeof(std::uint64_t);

  // How many bits tell this many things apart.
  [[nodiscard]] static unsigned bits_for(std::uint64_t count);

  // Starts over, without samples. They are below `size`, there are about `many`, and their places
  // have `place_bits`. Requires that a sample and its place fit into 64 bits.
  void reset(std::uint64_t size, std::uint64_t many, unsigned place_bits, std::uint64_t parts);
  void clear();  // the same, for the same kind of samples

  void add(std::uint64_t sample, std::uint64_t place);
  void remove(std::uint64_t first_place, std::uint64_t last_place);

  // Samples that the sweep has yet to meet, counted once per part that is left.
  [[nodiscard]] std::uint64_t left() const { return left_; }
  [[nodiscard]] bool at_start() const { return part_ == 0 && bin_ == 0; }
  // The part that take() takes next.
  [[nodiscard]] std::uint64_t part() const { return part_; }
  // The next keys in file order, at most `most`, until the next call. None: the sweep has reached
  // the end of the part, and the next call continues with the next one. Requires left() > 0.
  [[nodiscard]] std::span<const std::uint64_t> take(std::uint64_t most);

  [[nodiscard]] std::uint64_t sample_of(std::uint64_t key) const { return key >> place_bits_; }
  [[nodiscard]] std::uint64_t place_of(std::uint64_t key) const {
    return key & ((std::uint64_t{1} << place_bits_) - 1);
  }

 private:
  [[nodiscard]] bool take_bin();

  unsigned place_bits_ = 1, bin_bits_ = 0;
  std::uint64_t parts_ = 1;
  std::vector<std::vector<std::uint64_t>> bins_;  // of keys: sample << place_bits_ | place
  std::uint64_t left_ = 0;
  std::uint64_t part_ = 0, bin_ = 0;            // where the sweep is
  std::vector<std::uint64_t> taken_, scratch_;  // the bin that is being taken
  std::size_t taken_at_ = 0;
};

}  // namespace lowtide

// cutter.h - puts the samples of a group of upcoming batches into file order and cuts them into
// sets of reads.
//
// The kernel finds the pages of cached samples faster in that order, a disk reads them faster, and
// neighbours can be read together. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset/dataset.h"
#include "order/order.h"

namespace lowtide {

class Cutter {
 public:
  // Bookkeeping bytes per sample of a group, and per sample of one set.
  static constexpr std::uint64_t kSampleBytes = 2 * sizeof(std::uint64_t);
  static constexpr std::uint64_t kSetSampleBytes = 4 * sizeof(std::uint64_t);

  // A sample of the group: the batch, counted from the first one of the group, and the row in it.
  struct Place {
    std::uint32_t batch = 0;
    std::uint64_t row = 0;
  };

  // No batch has more than `most_rows`.
  Cutter(const Dataset& dataset, std::uint64_t most_rows);

  // Whether a group of so many batches can be sorted: a sample and its place share 64 bits.
  [[nodiscard]] bool can_sort(std::uint64_t batches) const;

  // Starts a group of at most this many batches; the previous one is forgotten. With `sort` the
  // samples are cut in file order if possible, else in the order of the batches.
  void begin(std::uint64_t batches, bool sort);
  void add(std::span<const std::uint64_t> samples);  // of the next batch
  void end();                                        // the group is complete

  // Samples of the current part that are not cut yet. A sample counts once per part.
  [[nodiscard]] std::uint64_t left() const { return exhausted() ? 0 : keys_.size() - cut_; }
  [[nodiscard]] std::uint64_t part() const { return part_; }
  [[nodiscard]] bool exhausted() const { return part_ == dataset_.parts(); }

  // Replaces `reads` by those of the next samples, at most `most`. target(place) says where the
  // sample at a place goes; it is called once per sample and part. Rows in Fortran order have many
  // parts. A set per part would cost a hand-over per column, so several parts go into one set.
  template <typename Target>
  void cut(std::uint64_t most, Target&& target, std::vector<Read>* reads) {
    reads->clear();
    for (std::uint64_t taken = 0; !exhausted() && taken < most;) {
      take(most - taken);
      targets_.clear();
      for (const Place& place : places_) targets_.push_back(target(place));
      dataset_.locate(part_, samples_, targets_, *reads);
      taken += samples_.size();
      advance();
    }
  }

 private:
  void take(std::uint64_t most);
  void advance();

  const Dataset& dataset_;
  const unsigned sample_bits_, row_bits_;
  unsigned place_bits_ = 0;                    // 0: keys_ are samples in the order of their places
  std::vector<std::uint64_t> keys_, scratch_;  // sample << place_bits_ | place in the group
  std::vector<std::uint64_t> ends_;            // of each batch in keys_, before sorting
  std::uint64_t part_;                         // the part to cut next
  std::uint64_t cut_ = 0;                      // samples of that part
  std::uint32_t batch_ = 0;                    // of sample cut_, if the keys are not sorted

  // Of one set.
  std::vector<std::uint64_t> samples_;
  std::vector<Place> places_;
  std::vector<std::byte*> targets_;
};

}  // namespace lowtide

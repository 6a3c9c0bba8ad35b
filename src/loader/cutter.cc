#include "loader/cutter.h"

#include <algorithm>
#include <bit>

#include "loader/sort.h"

namespace lowtide {
namespace {

unsigned bits_for(std::uint64_t count) {  // to tell this many things apart
  return static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(count, 1) - 1));
}

}  // namespace

Cutter::Cutter(const Dataset& dataset, std::uint64_t most_rows)
    : dataset_(dataset),
      sample_bits_(bits_for(dataset.size())),
      row_bits_(bits_for(most_rows)),
      part_(dataset.parts()) {}

bool Cutter::can_sort(std::uint64_t batches) const {
  return sample_bits_ + row_bits_ + bits_for(batches) < 64;
}

void Cutter::begin(std::uint64_t batches, bool sort) {
  keys_.clear();
  ends_.clear();
  part_ = dataset_.parts();
  cut_ = 0;
  batch_ = 0;
  // At least one bit, because 0 means that nothing is sorted.
  place_bits_ = sort && can_sort(batches) ? std::max(1U, row_bits_ + bits_for(batches)) : 0;
}

void Cutter::add(std::span<const std::uint64_t> samples) {
  const std::uint64_t batch = ends_.size();
  const std::size_t first = keys_.size();
  keys_.resize(first + samples.size());
  std::uint64_t place = batch << row_bits_;
  if (place_bits_ == 0) {
    std::ranges::copy(samples, keys_.begin() + static_cast<std::ptrdiff_t>(first));
  } else {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      keys_[first + i] = samples[i] << place_bits_ | place++;
    }
  }
  ends_.push_back(keys_.size());
}

void Cutter::end() {
  // Without anything to read the group is exhausted at once.
  part_ = dataset_.sample_bytes() == 0 || keys_.empty() ? dataset_.parts() : 0;
  // Sorting by sample sorts by file offset (Dataset promises that). Places ascend already and the
  // sort is stable, so only the bits of the sample are sorted.
  if (place_bits_ > 0) radix_sort(place_bits_, sample_bits_, &keys_, &scratch_);
}

// Makes the next samples of the current part, at most `most`, those of this set.
void Cutter::take(std::uint64_t most) {
  const auto count = static_cast<std::size_t>(std::min(left(), most));
  samples_.resize(count);
  places_.resize(count);
  if (place_bits_ == 0) {
    std::uint64_t row = cut_ - (batch_ == 0 ? 0 : ends_[batch_ - 1]);
    for (std::size_t i = 0; i < count; ++i, ++row) {
      while (cut_ + i == ends_[batch_]) {
        ++batch_;
        row = 0;
      }
      samples_[i] = keys_[cut_ + i];
      places_[i] = {.batch = batch_, .row = row};
    }
    return;
  }
  const std::uint64_t place_mask = (std::uint64_t{1} << place_bits_) - 1;
  const std::uint64_t row_mask = (std::uint64_t{1} << row_bits_) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t key = keys_[cut_ + i];
    samples_[i] = key >> place_bits_;
    places_[i] = {.batch = static_cast<std::uint32_t>((key & place_mask) >> row_bits_),
                  .row = key & row_mask};
  }
}

void Cutter::advance() {
  cut_ += samples_.size();
  if (cut_ < keys_.size()) return;
  cut_ = 0;
  batch_ = 0;
  ++part_;
}

}  // namespace lowtide

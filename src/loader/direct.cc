#include "loader/direct.h"

#include <algorithm>
#include <bit>

#include "loader/sort.h"

namespace lowtide {

void Direct::plan(std::span<Buffer* const> buffers, std::uint64_t offset_bytes, bool sort) {
  batch_size_ = std::max<std::uint64_t>(1, buffers.front()->samples.size());
  rows_.clear();
  keys_.clear();
  for (const Buffer* buffer : buffers) {
    rows_.push_back(buffer->memory.data() + offset_bytes);
    keys_.insert(keys_.end(), buffer->samples.begin(), buffer->samples.end());
  }
  // With nothing to read the group is exhausted at once.
  part_ = dataset_.sample_bytes() == 0 || keys_.empty() ? dataset_.parts() : 0;
  submitted_ = 0;

  const auto sample_bits = static_cast<unsigned>(std::bit_width(dataset_.size()));
  place_bits_ = static_cast<unsigned>(std::bit_width(keys_.size()));
  // Sorting only saves time, so a data set too large for 64-bit keys is read in its own order.
  if (!sort || order_.sequential() || sample_bits + place_bits_ > 64) {
    place_bits_ = 0;
    return;
  }
  for (std::size_t place = 0; place < keys_.size(); ++place) {
    keys_[place] = keys_[place] << place_bits_ | place;
  }
  // The sort is stable and the places ascend already, so only the bits of the sample are sorted.
  radix_sort(place_bits_, sample_bits, &keys_, &scratch_);
}

void Direct::take_piece(std::uint64_t most, std::vector<std::uint64_t>* samples,
                        std::vector<std::byte*>* targets, std::vector<Read>* reads) {
  samples->clear();
  targets->clear();
  reads->clear();
  // Rows in Fortran order have many parts. A set per part would cost a hand-over per column, so
  // several parts go into one set.
  while (!exhausted() && samples->size() < most) {
    const std::size_t first = samples->size();
    take_rows(most - first, samples, targets);
    dataset_.locate(part_, std::span(*samples).subspan(first), std::span(*targets).subspan(first),
                    *reads);
    submitted_ += samples->size() - first;
    if (submitted_ == keys_.size()) {
      submitted_ = 0;
      ++part_;
    }
  }
}

// Appends the next rows of the part, at most `most`.
void Direct::take_rows(std::uint64_t most, std::vector<std::uint64_t>* samples,
                       std::vector<std::byte*>* targets) const {
  const std::uint64_t place_mask = (std::uint64_t{1} << place_bits_) - 1;
  const std::uint64_t sample_bytes = dataset_.sample_bytes();
  const std::uint64_t count = std::min<std::uint64_t>(keys_.size() - submitted_, most);
  const std::size_t first = samples->size();
  samples->resize(first + count);
  targets->resize(first + count);
  std::uint64_t batch = submitted_ / batch_size_, row = submitted_ % batch_size_;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t key = keys_[submitted_ + i];
    if (place_bits_ > 0) {
      const std::uint64_t place = key & place_mask;
      batch = place / batch_size_;
      row = place % batch_size_;
    } else if (row == batch_size_) {
      row = 0;
      ++batch;
    }
    (*samples)[first + i] = key >> place_bits_;
    (*targets)[first + i] = rows_[batch] + row++ * sample_bytes;
  }
}

}  // namespace lowtide

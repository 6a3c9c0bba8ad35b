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
  part_ = dataset_.sample_bytes() == 0 || keys_.empty() ? dataset_.parts() : 0;
  submitted_ = 0;

  const auto sample_bits = static_cast<unsigned>(std::bit_width(dataset_.size()));
  place_bits_ = static_cast<unsigned>(std::bit_width(keys_.size()));
  if (!sort || order_.sequential() || sample_bits + place_bits_ > 64) {
    place_bits_ = 0;
    return;
  }
  for (std::size_t place = 0; place < keys_.size(); ++place) {
    keys_[place] = keys_[place] << place_bits_ | place;
  }
  radix_sort(place_bits_, sample_bits, &keys_, &scratch_);
}

void Direct::take_piece(std::uint64_t most, std::vector<std::uint64_t>* samples,
                        std::vector<std::byte*>* targets, std::vector<Read>* reads) {
  const std::uint64_t place_mask = (std::uint64_t{1} << place_bits_) - 1;
  const std::uint64_t sample_bytes = dataset_.sample_bytes();
  const std::uint64_t end = std::min<std::uint64_t>(keys_.size(), submitted_ + most);
  samples->resize(end - submitted_);
  targets->resize(end - submitted_);
  std::uint64_t batch = submitted_ / batch_size_, row = submitted_ % batch_size_;
  for (std::uint64_t i = submitted_; i < end; ++i) {
    if (place_bits_ > 0) {
      const std::uint64_t place = keys_[i] & place_mask;
      batch = place / batch_size_;
      row = place % batch_size_;
    } else if (row == batch_size_) {
      row = 0;
      ++batch;
    }
    (*samples)[i - submitted_] = keys_[i] >> place_bits_;
    (*targets)[i - submitted_] = rows_[batch] + row++ * sample_bytes;
  }
  reads->clear();
  dataset_.locate(part_, *samples, *targets, *reads);
  submitted_ = end;
  if (end == keys_.size()) {
    submitted_ = 0;
    ++part_;
  }
}

}  // namespace lowtide

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
  const std::uint64_t end = std::min<std::uint64_t>(keys_.size(), submitted_ + most);
  samples->clear();
  targets->clear();
  reads->clear();
  for (std::uint64_t i = submitted_; i < end; ++i) {
    const std::uint64_t place = place_bits_ == 0 ? i : keys_[i] & place_mask;
    samples->push_back(keys_[i] >> place_bits_);
    targets->push_back(rows_[place / batch_size_] + place % batch_size_ * dataset_.sample_bytes());
  }
  dataset_.locate(part_, *samples, *targets, *reads);
  submitted_ = end;
  if (end == keys_.size()) {
    submitted_ = 0;
    ++part_;
  }
}

}  // namespace lowtide

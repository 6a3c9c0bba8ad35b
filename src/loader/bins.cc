#include "loader/bins.h"

#include <algorithm>
#include <bit>

#include "loader/sort.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kBinSamples = 1024;
constexpr std::uint64_t kMostBins = 4096;

}  // namespace

unsigned Bins::bits_for(std::uint64_t count) {
  return static_cast<unsigned>(std::bit_width(std::max<std::uint64_t>(count, 1) - 1));
}

void Bins::reset(std::uint64_t size, std::uint64_t many, unsigned place_bits, std::uint64_t parts) {
  clear();
  parts_ = parts;
  place_bits_ = std::max(1U, place_bits);
  const unsigned sample_bits = bits_for(size);
  const std::uint64_t bins = std::clamp<std::uint64_t>(many / kBinSamples, 1, kMostBins);
  bin_bits_ = sample_bits - std::min(sample_bits, bits_for(bins));
  bins_.assign(((size - 1) >> bin_bits_) + 1, {});
}

void Bins::clear() {
  for (auto& bin : bins_) bin.clear();
  taken_.clear();
  taken_at_ = 0;
  left_ = part_ = bin_ = 0;
}

void Bins::add(std::uint64_t sample, std::uint64_t place) {
  bins_[sample >> bin_bits_].push_back(sample << place_bits_ | place);
  left_ += parts_;
}

void Bins::remove(std::uint64_t first_place, std::uint64_t last_place) {
  for (auto& bin : bins_) {
    left_ -= parts_ * std::erase_if(bin, [&](std::uint64_t key) {
               return place_of(key) >= first_place && place_of(key) < last_place;
             });
  }
}

std::span<const std::uint64_t> Bins::take(std::uint64_t most) {
  if (taken_at_ == taken_.size() && !take_bin()) return {};
  const std::size_t count = std::min<std::size_t>(most, taken_.size() - taken_at_);
  const std::span<const std::uint64_t> keys(taken_.data() + taken_at_, count);
  taken_at_ += count;
  left_ -= count;
  if (left_ == 0) part_ = bin_ = 0;  // whatever is added next starts a sweep
  return keys;
}

// Takes the next bin that has samples. False: the sweep has reached the end of the current part.
bool Bins::take_bin() {
  taken_.clear();
  taken_at_ = 0;
  for (; bin_ < bins_.size(); ++bin_) {
    std::vector<std::uint64_t>& bin = bins_[bin_];
    if (bin.empty()) continue;
    // Sorting by sample sorts by file offset (Dataset promises that). Equal samples may be in any
    // order.
    if (part_ == 0) radix_sort(place_bits_, bin_bits_, &bin, &scratch_);
    if (part_ + 1 == parts_) {
      taken_.swap(bin);
    } else {
      taken_ = bin;
    }
    ++bin_;
    return true;
  }
  bin_ = 0;
  part_ = part_ + 1 == parts_ ? 0 : part_ + 1;
  return false;
}

}  // namespace lowtide

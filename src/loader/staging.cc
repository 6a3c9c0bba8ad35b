#include "loader/staging.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "loader/sort.h"

namespace lowtide {

Staging::Staging(const Dataset& dataset, const Order& order, const Schedule& schedule,
                 std::uint32_t slots)
    : dataset_(dataset),
      order_(order),
      schedule_(schedule),
      slots_(slots),
      sample_bytes_(dataset.sample_bytes()),
      place_bits_(static_cast<unsigned>(std::bit_width(std::uint64_t{slots}))),
      memory_(slots * dataset.sample_bytes(), false, "reads ahead"),
      free_(slots) {
  // Filled in reverse, so that the first slots are used first: a short epoch then touches only
  // their pages.
  std::iota(free_.rbegin(), free_.rend(), 0U);
}

void Staging::plan(std::uint64_t first, std::uint64_t last, Window* window) {
  window->first_step = window->next_step = first;
  window->last_step = last;
  window->submitted = 0;
  window->gathered = 0;
  window->part = 0;
  window->landed = 0;
  std::uint32_t count = 0;
  for (std::uint64_t step = first; step < last; ++step) {
    count += static_cast<std::uint32_t>(schedule_.count(step));
  }
  window->samples = count;
  window->slot_of.resize(count);
  keys_.resize(count);
  scratch_.resize(count);  // holds the samples here; the sort needs it only afterwards
  std::uint64_t place = 0;
  for (std::uint64_t step = first; step < last; ++step) {
    const std::span<std::uint64_t> samples(scratch_.data() + place, schedule_.count(step));
    schedule_.fill(order_, step, dataset_.size(), samples);
    for (const std::uint64_t sample : samples) {
      keys_[place] = sample << place_bits_ | place;
      ++place;
    }
  }
  // Sorting by sample sorts by file offset (Dataset promises that). Places ascend already and the
  // sort is stable, so their bits need no pass.
  radix_sort(place_bits_, static_cast<unsigned>(std::bit_width(dataset_.size())), &keys_,
             &scratch_);
}

std::uint32_t Staging::submittable(const Window& window) const {
  if (window.empty() || window.part == dataset_.parts()) return 0;
  const std::uint32_t left = window.samples - window.submitted;
  // Only the first part takes new slots; later parts go into the slots of their samples.
  return window.part == 0 ? std::min(left, static_cast<std::uint32_t>(free_.size())) : left;
}

void Staging::take_piece(std::uint32_t most, Window* window, std::vector<std::uint64_t>* samples,
                         std::vector<std::byte*>* targets, std::vector<Read>* reads) {
  const std::uint64_t place_mask = (std::uint64_t{1} << place_bits_) - 1;
  samples->clear();
  targets->clear();
  reads->clear();
  // A set may span several parts, because a set per column would cost a hand-over per column.
  while (const std::uint32_t count = std::min<std::uint32_t>(
             submittable(*window), most - static_cast<std::uint32_t>(samples->size()))) {
    const std::size_t first = samples->size();
    for (std::uint32_t i = window->submitted; i < window->submitted + count; ++i) {
      std::uint32_t& slot = window->slot_of[keys_[i] & place_mask];
      if (window->part == 0) {
        slot = free_.back();
        free_.pop_back();
      }
      samples->push_back(keys_[i] >> place_bits_);
      targets->push_back(memory_.data() + slot * sample_bytes_);
    }
    dataset_.locate(window->part, std::span(*samples).subspan(first),
                    std::span(*targets).subspan(first), *reads);
    window->submitted += count;
    if (window->submitted == window->samples) {
      ++window->part;
      if (window->part < dataset_.parts()) window->submitted = 0;
    }
  }
}

void Staging::gather(Window* window, std::span<const std::uint64_t> samples, std::byte* out) {
  const std::span<const std::uint32_t> slots(window->slot_of.data() + window->gathered,
                                             samples.size());
  staged_.clear();
  for (const std::uint32_t slot : slots) staged_.push_back(memory_.data() + slot * sample_bytes_);
  dataset_.deliver(samples, staged_, out);
  free_.insert(free_.end(), slots.begin(), slots.end());
  window->gathered += static_cast<std::uint32_t>(samples.size());
  ++window->next_step;
}

}  // namespace lowtide

// schedule_samples.h - what a turn of a schedule gets.
#pragma once

#include <cstdint>
#include <vector>

#include "loader/schedule.h"

namespace lowtide {

using Samples = std::vector<std::uint64_t>;

inline Samples samples_of(const Schedule& schedule, const Order& order, std::uint64_t turn) {
  Samples samples(schedule.count(turn));
  schedule.fill(order, turn, ~std::uint64_t{0}, samples);
  return samples;
}

}  // namespace lowtide

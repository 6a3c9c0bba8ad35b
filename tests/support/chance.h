// chance.h - how far counts are from what chance would give.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace lowtide {

using Counts = std::vector<std::uint64_t>;

inline constexpr double kChance = 4.5;  // standard deviations: what chance explains

// Chi-square against equal cells, in standard deviations from what chance would give. `fixed` is
// the number of sums that the data could not choose freely.
inline double surprise(const Counts& counts, double fixed = 1) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  const double expected = total / static_cast<double>(counts.size());
  double chi_square = 0;
  for (const std::uint64_t count : counts) {
    const double off = static_cast<double>(count) - expected;
    chi_square += off * off / expected;
  }
  const double freedom = static_cast<double>(counts.size()) - fixed;
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

}  // namespace lowtide

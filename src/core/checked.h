// checked.h - arithmetic on sizes that come from a file or a caller. It returns false instead of
// wrapping, so that a header cannot turn a large number into a small buffer.
#pragma once

#include <cstdint>

namespace lowtide {

[[nodiscard]] inline bool checked_add(std::uint64_t a, std::uint64_t b, std::uint64_t* out) {
  return !__builtin_add_overflow(a, b, out);
}

[[nodiscard]] inline bool checked_mul(std::uint64_t a, std::uint64_t b, std::uint64_t* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// For sums that are only shown or compared: the largest number instead of one that has wrapped.
[[nodiscard]] inline std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return checked_add(a, b, &sum) ? sum : UINT64_MAX;
}

// Whether [offset, offset + size) lies inside a file of `total` bytes.
[[nodiscard]] inline bool fits_inside(std::uint64_t offset, std::uint64_t size,
                                      std::uint64_t total) {
  return offset <= total && size <= total - offset;
}

[[nodiscard]] constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t power_of_two) {
  return value & ~(power_of_two - 1);
}

// Requires value <= 2^64 - power_of_two.
[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t power_of_two) {
  return (value + power_of_two - 1) & ~(power_of_two - 1);
}

}  // namespace lowtide

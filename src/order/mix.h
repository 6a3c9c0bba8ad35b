// mix.h - the hash behind every order that is drawn: what it gives is part of their promise.
#pragma once

#include <cstdint>

#include "core/hash.h"

namespace lowtide {

// Mixed one after the other, not summed first: (seed, epoch + 1) and (seed + 1, epoch) are
// unrelated.
[[nodiscard]] constexpr std::uint64_t key_of(std::uint64_t size, std::uint64_t seed,
                                             std::uint64_t epoch) noexcept {
  return mix64(mix64(mix64(size + kGolden64) + seed) + epoch);
}

// The index-th of 2^64 draws under a key; any of them costs the same.
[[nodiscard]] constexpr std::uint64_t draw(std::uint64_t key, std::uint64_t index) noexcept {
  return mix64(key + (index + 1) * kGolden64);
}

}  // namespace lowtide

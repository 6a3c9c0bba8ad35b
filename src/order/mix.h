// mix.h - the hash behind every random order. Its values must never change, because saved runs
// depend on them.
#pragma once

#include <cstdint>

#include "core/hash.h"

namespace lowtide {

// Mixes one value after the other instead of a sum, so that (seed, epoch + 1) and (seed + 1, epoch)
// are unrelated.
[[nodiscard]] constexpr std::uint64_t key_of(std::uint64_t size, std::uint64_t seed,
                                             std::uint64_t epoch) noexcept {
  return mix64(mix64(mix64(size + kGolden64) + seed) + epoch);
}

// The index-th of 2^64 draws under a key, in O(1).
[[nodiscard]] constexpr std::uint64_t draw(std::uint64_t key, std::uint64_t index) noexcept {
  return mix64(key + (index + 1) * kGolden64);
}

}  // namespace lowtide

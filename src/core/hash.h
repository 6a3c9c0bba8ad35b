// hash.h - 64-bit mixing for fingerprints and random orders. Not for cryptography.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace lowtide {

inline constexpr std::uint64_t kGolden64 = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio, odd

// A bijection of 64 bits in which every input bit affects every output bit.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

// Extends `hash` by one value.
[[nodiscard]] constexpr std::uint64_t hash_with(std::uint64_t hash, std::uint64_t value) noexcept {
  return mix64(hash + value + kGolden64);
}

// Extends `hash` by these bytes and their count.
[[nodiscard]] inline std::uint64_t hash_with(std::uint64_t hash,
                                             std::span<const std::byte> bytes) noexcept {
  hash = hash_with(hash, bytes.size());
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = bytes.size() < sizeof(word) ? bytes.size() : sizeof(word);
    std::memcpy(&word, bytes.data(), size);
    hash = hash_with(hash, word);
    bytes = bytes.subspan(size);
  }
  return hash;
}

// 16 digits, as hashes appear in names and texts.
[[nodiscard]] inline std::string hex_text(std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = text.size(); i-- > 0; value >>= 4U) text[i] = kDigits[value & 15U];
  return text;
}

}  // namespace lowtide

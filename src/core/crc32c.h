// crc32c.h - the checksum of zarr's shards: CRC-32C (Castagnoli), as google_crc32c computes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lowtide {

inline constexpr std::array<std::uint32_t, 256> kCrc32cTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0x82f63b78 : 0);
    table[byte] = value;
  }
  return table;
}();

// As crc32() in crc32.h. A byte at a time: an index has 16 bytes per chunk.
[[nodiscard]] inline std::uint32_t crc32c(std::uint32_t before, std::span<const std::byte> bytes) {
  std::uint32_t value = ~before;
  for (const std::byte byte : bytes) {
    value = value >> 8 ^ kCrc32cTable[(value ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  }
  return ~value;
}

}  // namespace lowtide

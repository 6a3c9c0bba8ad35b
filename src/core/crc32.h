// crc32.h - the checksum of zip archives: CRC-32 with the polynomial of zlib's crc32().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lowtide {

namespace crc32_tables {

// Table n is the effect of a byte that n more bytes follow.
constexpr std::array<std::array<std::uint32_t, 256>, 8> make() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? 0xedb88320 : 0);
    tables[0][byte] = value;
  }
  for (std::size_t n = 1; n < 8; ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[n - 1][byte];
      tables[n][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

inline constexpr auto kAll = make();

}  // namespace crc32_tables

// The checksum of all bytes so far, of which `before` is the checksum without `bytes`; 0 for none.
// Eight bytes at a time: their effects are independent of each other.
[[nodiscard]] inline std::uint32_t crc32(std::uint32_t before, std::span<const std::byte> bytes) {
  const auto& tables = crc32_tables::kAll;
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  std::uint32_t value = ~before;
  while (bytes.size() >= 8) {
    const std::uint32_t low = value ^ (at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24);
    value = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
            tables[4][low >> 24] ^ tables[3][at(4)] ^ tables[2][at(5)] ^ tables[1][at(6)] ^
            tables[0][at(7)];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes) {
    value = value >> 8 ^ tables[0][(value ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  }
  return ~value;
}

}  // namespace lowtide

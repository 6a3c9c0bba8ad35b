#include "core/utf8.h"

#include <cstdint>

namespace lowtide {

std::size_t utf8_size(std::string_view bytes) noexcept {
  if (bytes.empty()) return 0;
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first < 0x80) return 1;
  std::size_t size = 0;
  if (first >= 0xc2 && first < 0xe0) size = 2;
  if (first >= 0xe0 && first < 0xf0) size = 3;
  if (first >= 0xf0 && first < 0xf5) size = 4;
  if (size == 0 || size > bytes.size()) return 0;
  std::uint32_t character = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(bytes[i]);
    if ((next & 0xc0) != 0x80) return 0;
    character = character << 6 | (next & 0x3f);
  }
  if (size == 3 && (character < 0x800 || (character >= 0xd800 && character < 0xe000))) return 0;
  if (size == 4 && (character < 0x10000 || character > 0x10ffff)) return 0;
  return size;
}

}  // namespace lowtide

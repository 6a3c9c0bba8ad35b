#include "core/utf8.h"

#include <algorithm>

namespace lowtide {
namespace {

struct Range {
  char32_t first, last;
};

// Unicode's categories Cc, Zl and Zp, and the characters of Cf that are invisible.
constexpr Range kHidden[] = {
    {0x0, 0x1f},        {0x7f, 0x9f},       {0xad, 0xad},      {0x61c, 0x61c},   {0x180e, 0x180e},
    {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},  {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe007f}};

}  // namespace

Utf8Character first_utf8(std::string_view bytes) noexcept {
  if (bytes.empty()) return {};
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first < 0x80) return {first, 1};
  std::size_t size = 0;
  if (first >= 0xc2 && first < 0xe0) size = 2;
  if (first >= 0xe0 && first < 0xf0) size = 3;
  if (first >= 0xf0 && first < 0xf5) size = 4;
  if (size == 0 || size > bytes.size()) return {};
  char32_t code = first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(bytes[i]);
    if ((next & 0xc0) != 0x80) return {};
    code = code << 6 | (next & 0x3f);
  }
  if (size == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) return {};
  if (size == 4 && (code < 0x10000 || code > 0x10ffff)) return {};
  return {code, size};
}

bool is_hidden(char32_t code) noexcept {
  return std::ranges::any_of(
      kHidden, [code](const Range& range) { return code >= range.first && code <= range.last; });
}

}  // namespace lowtide

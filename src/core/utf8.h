// utf8.h - where characters end in bytes that may be no UTF-8 at all, and which of them are hidden.
#pragma once

#include <cstddef>
#include <string_view>

namespace lowtide {

struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: not a character
};

// The character that `bytes` begins with. It has 0 bytes where there is none: a stray or cut
// sequence, an overlong one, a surrogate, beyond U+10FFFF, or no bytes at all.
[[nodiscard]] Utf8Character first_utf8(std::string_view bytes) noexcept;
[[nodiscard]] inline std::size_t utf8_size(std::string_view bytes) noexcept {
  return first_utf8(bytes).bytes;
}

// A character that nobody sees, and that can change how the rest of the line looks: control
// characters (C0, DEL, C1), line and paragraph separators, bidirectional overrides, zero-width and
// other invisible format characters. Wherever a name is shown, these are escaped.
[[nodiscard]] bool is_hidden(char32_t code) noexcept;

}  // namespace lowtide

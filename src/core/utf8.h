// utf8.h - finds the characters in bytes that may not be UTF-8, and tells which are hidden.
#pragma once

#include <cstddef>
#include <string_view>

namespace lowtide {

struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: not a character
};

// The character that `bytes` begins with. Its size is 0 if there is none: the sequence is stray,
// cut off or overlong, encodes a surrogate or exceeds U+10FFFF, or `bytes` is empty.
[[nodiscard]] Utf8Character first_utf8(std::string_view bytes) noexcept;
[[nodiscard]] inline std::size_t utf8_size(std::string_view bytes) noexcept {
  return first_utf8(bytes).bytes;
}

// Whether a character is invisible and can change how the rest of the line looks: control
// characters (C0, DEL, C1), line and paragraph separators, bidirectional overrides, zero-width and
// other invisible format characters. They are escaped wherever a name is shown.
[[nodiscard]] bool is_hidden(char32_t code) noexcept;

}  // namespace lowtide

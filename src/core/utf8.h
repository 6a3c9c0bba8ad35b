// utf8.h - the sizes of characters in bytes that may not be UTF-8, and which are hidden.
#pragma once

#include <cstddef>
#include <string_view>

#include "lowtide/command/terminal.h"

namespace lowtide {

[[nodiscard]] inline std::size_t utf8_size(std::string_view bytes) noexcept {
  return first_utf8(bytes).bytes;
}

// Whether a character is invisible and can change how the rest of the line looks: control
// characters (C0, DEL, C1), line and paragraph separators, bidirectional overrides, zero-width and
// other invisible format characters. They are escaped wherever a name is shown.
[[nodiscard]] bool is_hidden(char32_t code) noexcept;

}  // namespace lowtide

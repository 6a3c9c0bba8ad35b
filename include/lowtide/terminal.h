// terminal.h - what is known of the terminal behind a descriptor, and text that is safe to show on
// it. For programs that print; the library itself never does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide {

// Whether descriptor 0, 1, 2, ... is a terminal. False where it is closed.
[[nodiscard]] bool is_terminal(int descriptor) noexcept;

// Its width and height; 0 where it is no terminal or does not tell.
[[nodiscard]] std::uint32_t terminal_columns(int descriptor) noexcept;
[[nodiscard]] std::uint32_t terminal_rows(int descriptor) noexcept;

// Text that came from outside (a file name, a message with one in it) on one line. Bytes that are
// no UTF-8 and characters that nobody sees become \n, \x1b, \xe2\x80\xae: control characters, line
// separators, bidirectional overrides, zero-width ones. With `ascii_only`, so does everything
// beyond ASCII.
[[nodiscard]] std::string visible_text(std::string_view bytes, bool ascii_only = false);

}  // namespace lowtide

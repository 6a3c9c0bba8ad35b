// terminal.h - properties of the terminal behind a file descriptor, and text that is safe to show
// on it. For programs that print; the library itself never does. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide {

// Whether a file descriptor is a terminal. False if it is closed.
[[nodiscard]] bool is_terminal(int descriptor) noexcept;

// Its width and height in characters; 0 if it is not a terminal or does not report them.
[[nodiscard]] std::uint32_t terminal_columns(int descriptor) noexcept;
[[nodiscard]] std::uint32_t terminal_rows(int descriptor) noexcept;

// Makes text from outside (a file name, or a message that contains one) safe to show on one line.
// Bytes that are not UTF-8 and invisible characters (control characters, line separators,
// bidirectional overrides, zero-width characters) become escapes such as \n, \x1b or \xe2\x80\xae.
// With `ascii_only`, so does everything beyond ASCII.
[[nodiscard]] std::string visible_text(std::string_view bytes, bool ascii_only = false);

struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: not a character
};
// The character that `bytes` begins with. Its size is 0 if there is none: the sequence is stray,
// cut off or overlong, encodes a surrogate or exceeds U+10FFFF, or `bytes` is empty.
[[nodiscard]] Utf8Character first_utf8(std::string_view bytes) noexcept;

// 1234567 -> "1,234,567".
[[nodiscard]] std::string grouped(std::uint64_t count);

}  // namespace lowtide

// terminal.h - what is known of the terminal behind a descriptor. For programs that print; the
// library itself never does.
#pragma once

#include <cstdint>

namespace lowtide {

// Whether descriptor 0, 1, 2, ... is a terminal. False where it is closed.
[[nodiscard]] bool is_terminal(int descriptor) noexcept;

// Its width and height; 0 where it is no terminal or does not tell.
[[nodiscard]] std::uint32_t terminal_columns(int descriptor) noexcept;
[[nodiscard]] std::uint32_t terminal_rows(int descriptor) noexcept;

}  // namespace lowtide

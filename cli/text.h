// text.h - UTF-8, one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lowtide::cli {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;  // else it is one byte that begins no character
};

// The first character of `text`, which is not empty.
[[nodiscard]] Character first_character(std::string_view text);

// Columns of a terminal: 0 for marks that stand on the one before, 2 for wide ones.
[[nodiscard]] std::size_t columns_of(std::uint32_t code);

}  // namespace lowtide::cli

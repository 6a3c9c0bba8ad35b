// text.h - UTF-8, one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lowtide::cli {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;  // false: a single byte that does not begin a character
};

// The first character of `text`, which is not empty.
[[nodiscard]] Character first_character(std::string_view text);

// Terminal columns: 0 for combining marks, 2 for wide characters, else 1.
[[nodiscard]] std::size_t columns_of(std::uint32_t code);

}  // namespace lowtide::cli

// markup.h - text and numbers on their way into HTML and SVG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide {

// Any bytes as text of HTML, SVG or of an attribute in double quotes: names that are no UTF-8 or
// have control characters are shown quoted, markup is escaped.
[[nodiscard]] std::string escaped(std::string_view bytes);

// One decimal at most, "." in every locale: 12.5, 3.
[[nodiscard]] std::string coordinate(double value);

// 1234567 -> "1,234,567".
[[nodiscard]] std::string grouped(std::uint64_t value);

// At most `most` characters, the middle left out where it is longer; shown as `escaped` would, but
// not yet escaped.
[[nodiscard]] std::string short_text(std::string_view bytes, std::size_t most);
// The same of the last part of a path.
[[nodiscard]] std::string short_name(std::string_view path, std::size_t most);

// A span of time: "0.25 s", "1 min 30 s", "1 h 5 min".
[[nodiscard]] std::string time_text(double seconds);

}  // namespace lowtide

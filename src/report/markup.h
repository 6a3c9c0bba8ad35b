// markup.h - formats text and numbers for HTML and SVG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide {

// Any bytes as text for HTML, SVG or an attribute in double quotes. Names that are not UTF-8 or
// contain control characters are shown quoted; markup is escaped.
[[nodiscard]] std::string escaped(std::string_view bytes);

// One decimal at most, "." in every locale: 12.5, 3.
[[nodiscard]] std::string coordinate(double value);

// A <text> of that class with its start, middle or end at (x, y), as the class says.
[[nodiscard]] std::string svg_text(const char* look, double x, double y, const std::string& words);

// At most `most` characters, with the middle left out if it is longer. Unprintable bytes are shown
// as `escaped` would show them, but markup is not escaped yet.
[[nodiscard]] std::string short_text(std::string_view bytes, std::size_t most);
// The same for the last part of a path.
[[nodiscard]] std::string short_name(std::string_view path, std::size_t most);

// A span of time: "0.25 s", "1 min 30 s", "1 h 5 min".
[[nodiscard]] std::string time_text(double seconds);
// "2026-05-01 12:30 UTC", whatever the locale and time zone.
[[nodiscard]] std::string date_text(std::int64_t unix_ms);

}  // namespace lowtide

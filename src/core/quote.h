// quote.h - text that came from a file or a caller, made safe to show and to write.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// The Python string literal of UTF-8 text, quotes included, as repr() chooses them. Control
// characters are escaped, other characters stay as they are, so ast.literal_eval gives the text
// back.
[[nodiscard]] std::string python_repr(std::string_view text);

// The start of any bytes for an error message: quoted, ASCII only, at most 60 bytes of it and then
// "...".
[[nodiscard]] std::string excerpt(std::string_view bytes);

// A file's or a program's name within a sentence: as it is where it is UTF-8 without hidden
// characters (utf8.h), else quoted, ASCII only.
[[nodiscard]] std::string shown(std::string_view bytes);

}  // namespace lowtide

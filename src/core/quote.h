// quote.h - makes text from a file or a caller safe to show and to write.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// The Python string literal of UTF-8 text, with the quotes that repr() would choose. Control
// characters are escaped and all others stay as they are, so ast.literal_eval returns the text.
[[nodiscard]] std::string python_repr(std::string_view text);

// The start of any bytes for an error message: quoted, ASCII only, and cut after 60 bytes with
// "...".
[[nodiscard]] std::string excerpt(std::string_view bytes);

// The name of a file or a program for use in a sentence: unchanged if it is UTF-8 without hidden
// characters (utf8.h), otherwise quoted and ASCII only.
[[nodiscard]] std::string shown(std::string_view bytes);

}  // namespace lowtide

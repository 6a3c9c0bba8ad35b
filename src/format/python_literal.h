// python_literal.h - the small part of Python's literals in which NumPy writes its headers.
//
// Strings, decimal integers, True, False, None, lists, tuples and dicts: nothing is evaluated,
// nothing is looked up. One pass, linear time; depth and number of nodes are limited, so a hostile
// text costs little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide {

constexpr std::size_t kMaxLiteralDepth = 32;
constexpr std::size_t kMaxLiteralNodes = 64 * 1024;

// Who wrote the text decides how its bytes are read.
enum class Dialect {
  python2,  // .npy 1.0 and 2.0: latin1, and integers may end in L
  python3,  // .npy 3.0 and our callers: UTF-8
};

struct Literal {
  enum class Kind { none, boolean, integer, string, list, tuple, dict };

  Kind kind = Kind::none;
  bool truth = false;                   // boolean
  std::optional<std::int64_t> integer;  // integer; nullopt where it needs more than 64 bits
  std::string string;                   // string, as UTF-8
  std::vector<Literal> items;           // list and tuple; a dict's are key, value, key, value, ...
  std::string_view source;              // the bytes that spell it, borrowed from the text
};

// Throws FormatError that names the byte where the text stops being a literal, what was expected
// there and what was found. The result borrows from `text`.
[[nodiscard]] Literal parse_literal(std::string_view text, Dialect dialect);

}  // namespace lowtide

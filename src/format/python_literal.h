// python_literal.h - the subset of Python's literals in which NumPy writes its headers.
//
// It knows strings, decimal integers, True, False, None, lists, tuples and dicts. Nothing is
// evaluated or looked up. Parsing takes one pass in linear time. Depth and number of nodes are
// limited, so a hostile text costs little.
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

// The encoding of the text depends on who wrote it.
enum class Dialect {
  python2,  // .npy 1.0 and 2.0: latin1, and integers may end in L
  python3,  // .npy 3.0 and arguments of callers: UTF-8
};

struct Literal {
  enum class Kind { none, boolean, integer, string, list, tuple, dict };

  Kind kind = Kind::none;
  bool truth = false;                   // boolean
  std::optional<std::int64_t> integer;  // integer; nullopt if it needs more than 64 bits
  std::string string;                   // string, as UTF-8
  std::vector<Literal> items;           // list and tuple; of a dict: key, value, key, value, ...
  std::string_view source;              // the bytes that spell it, borrowed from the text
};

// Throws FormatError, which names the byte where the text stops being a literal, what was expected
// there and what was found. The result borrows from `text`.
[[nodiscard]] Literal parse_literal(std::string_view text, Dialect dialect);

}  // namespace lowtide

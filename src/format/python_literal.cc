#include "format/python_literal.h"

#include <charconv>
#include <utility>

#include "core/quote.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3f));
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

bool is_scalar_value(std::uint32_t code_point) {
  return code_point < 0xd800 || (code_point > 0xdfff && code_point <= 0x10ffff);
}

// The length of the well-formed UTF-8 sequence at the front of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t lead = at(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                                           : 4;
  if (length == 0 || lead > 0xf4 || length > text.size()) return 0;
  std::uint32_t code_point = length == 1 ? lead : lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    code_point = code_point << 6 | (at(i) & 0x3fu);
  }
  const bool overlong =
      (length == 3 && code_point < 0x800) || (length == 4 && code_point < 0x10000);
  return overlong || !is_scalar_value(code_point) ? 0 : length;
}

class Parser {
 public:
  Parser(std::string_view text, Dialect dialect) : text_(text), dialect_(dialect) {}

  Literal parse() {
    Literal root = value(0);
    skip_space();
    if (pos_ < text_.size()) fail("the end of the text");
    return root;
  }

 private:
  Literal value(std::size_t depth) {
    skip_space();
    if (depth > kMaxLiteralDepth) fail("at most 32 levels of brackets");
    if (++nodes_ > kMaxLiteralNodes) fail("at most 65536 values");
    const std::size_t start = pos_;
    Literal literal;
    const char c = peek();
    if (c == '{') {
      literal = sequence(Literal::Kind::dict, '}', depth);
    } else if (c == '[') {
      literal = sequence(Literal::Kind::list, ']', depth);
    } else if (c == '(') {
      literal = sequence(Literal::Kind::tuple, ')', depth);
    } else if (c == '\'' || c == '"') {
      literal = string();
    } else if (c == 'u' && pos_ + 1 < text_.size() &&
               (text_[pos_ + 1] == '\'' || text_[pos_ + 1] == '"')) {
      ++pos_;
      literal = string();
    } else if (is_digit(c) || c == '-') {
      literal = integer();
    } else {
      literal = keyword();
    }
    literal.source = text_.substr(start, pos_ - start);
    return literal;
  }

  // Items between brackets, separated by commas, with an optional comma after the last.
  Literal sequence(Literal::Kind kind, char close, std::size_t depth) {
    Literal literal;
    literal.kind = kind;
    ++pos_;
    bool comma = true;
    while (!accept(close)) {
      if (!comma) fail(std::string("',' or '") + close + "'");
      literal.items.push_back(value(depth + 1));
      if (kind == Literal::Kind::dict) {
        if (!accept(':')) fail("':'");
        literal.items.push_back(value(depth + 1));
      }
      comma = accept(',');
    }
    // In Python the comma makes the tuple: (3) is a number.
    if (kind == Literal::Kind::tuple && literal.items.size() == 1 && !comma) {
      Literal inner = std::move(literal.items.front());
      return inner;
    }
    return literal;
  }

  Literal string() {
    Literal literal;
    literal.kind = Literal::Kind::string;
    const char mark = text_[pos_++];
    while (peek() != mark) {
      const char c = peek();
      if (pos_ == text_.size() || c == '\n' || c == '\r' || c == '\0') {
        fail(std::string("the closing ") + mark);
      }
      if (c == '\\') {
        append_utf8(literal.string, escape());
      } else if (dialect_ == Dialect::python2) {
        append_utf8(literal.string, static_cast<unsigned char>(c));
        ++pos_;
      } else {
        const std::size_t length = utf8_length(text_.substr(pos_));
        if (length == 0) fail("UTF-8");
        literal.string += text_.substr(pos_, length);
        pos_ += length;
      }
    }
    ++pos_;
    return literal;
  }

  // The escapes that repr() writes, and similar ones.
  std::uint32_t escape() {
    ++pos_;
    const char c = peek();
    constexpr std::string_view kLetters = "\\'\"nrtabfv";
    constexpr std::string_view kMeanings = "\\'\"\n\r\t\a\b\f\v";
    const std::size_t known = kLetters.find(c);
    if (pos_ < text_.size() && known != std::string_view::npos) {
      ++pos_;
      return static_cast<unsigned char>(kMeanings[known]);
    }
    if (c == 'x') return code_point(2);
    if (c == 'u') return code_point(4);
    if (c == 'U') return code_point(8);
    fail("an escape that repr() writes");
  }

  std::uint32_t code_point(std::size_t digits) {
    const std::string_view hex = text_.substr(pos_ + 1, digits);
    std::uint32_t value = 0;
    const char* const end = hex.data() + hex.size();
    const auto [stop, err] = std::from_chars(hex.data(), end, value, 16);
    if (hex.size() < digits || stop != end || err != std::errc{} || !is_scalar_value(value)) {
      fail("the " + std::to_string(digits) + " hexadecimal digits of a character");
    }
    pos_ += 1 + digits;
    return value;
  }

  Literal integer() {
    Literal literal;
    literal.kind = Literal::Kind::integer;
    const std::size_t start = pos_;
    if (peek() == '-') ++pos_;
    const std::size_t digits = pos_;
    while (is_digit(peek())) ++pos_;
    if (pos_ == digits) fail("a digit");
    if (text_[digits] == '0' && pos_ > digits + 1) {
      pos_ = start;
      fail("an integer without leading zeros");
    }
    std::int64_t number = 0;
    const auto [stop, err] = std::from_chars(text_.data() + start, text_.data() + pos_, number);
    if (err == std::errc{}) literal.integer = number;
    if (dialect_ == Dialect::python2 && peek() == 'L') ++pos_;
    if (is_word(peek()) || peek() == '.') fail("the end of an integer");
    return literal;
  }

  Literal keyword() {
    const std::size_t start = pos_;
    std::size_t end = start;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string_view word = text_.substr(start, end - start);
    Literal literal;
    if (word == "True" || word == "False") {
      literal.kind = Literal::Kind::boolean;
      literal.truth = word == "True";
    } else if (word != "None") {
      fail("a string, integer, True, False, None, list, tuple or dict");
    }
    pos_ = end;
    return literal;
  }

  // Returns NUL at the end of the text too. NUL is valid nowhere, so the two cannot be confused.
  [[nodiscard]] char peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }

  void skip_space() {
    while (pos_ < text_.size() && is_space(text_[pos_])) ++pos_;
  }

  bool accept(char c) {
    skip_space();
    if (peek() != c) return false;
    ++pos_;
    return true;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    const std::string found =
        pos_ < text_.size() ? excerpt(text_.substr(pos_)) : std::string("the end of the text");
    throw FormatError("expected " + expected + " at byte " + std::to_string(pos_) +
                      " of the Python literal, found " + found);
  }

  std::string_view text_;
  Dialect dialect_;
  std::size_t pos_ = 0;
  std::size_t nodes_ = 0;
};

}  // namespace

Literal parse_literal(std::string_view text, Dialect dialect) {
  return Parser(text, dialect).parse();
}

}  // namespace lowtide

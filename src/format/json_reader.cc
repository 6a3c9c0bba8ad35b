#include "format/json_reader.h"

#include <algorithm>
#include <charconv>

#include "core/quote.h"
#include "core/utf8.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::string_view kJsonBlanks = " \t\r\n";

void append_character(std::string* out, char32_t code) {
  const auto put = [out](char32_t byte) { *out += static_cast<char>(byte); };
  const auto put_rest = [&](int shift) { put(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put_rest(6);
  } else {
    put(0xf0 | code >> 18);
    put_rest(12);
    put_rest(6);
  }
  put_rest(0);
}

}  // namespace

char JsonReader::peek() {
  at_ = std::min(text_.find_first_not_of(kJsonBlanks, at_), text_.size());
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonReader::fail(const std::string& expected) const {
  const std::string found =
      at_ < text_.size() ? excerpt(text_.substr(at_)) : std::string("the end of the text");
  throw FormatError("expected " + expected + " at byte " + std::to_string(at_) +
                    " of the JSON, found " + found);
}

void JsonReader::open(char bracket, char close) {
  if (peek() != bracket) fail(std::string(bracket == '{' ? "an object" : "an array"));
  if (levels_.size() == kMaxJsonDepth) fail("at most 32 levels of brackets");
  ++at_;
  levels_.push_back({close});
}

bool JsonReader::goes_on(const char* item) {
  Level& level = levels_.back();
  const char c = peek();
  if (c == level.close) {
    ++at_;
    levels_.pop_back();
    return false;
  }
  if (!level.empty) {
    if (c != ',') fail(std::string("',' or '") + level.close + "'");
    ++at_;
    if (peek() == level.close) fail(item);
  }
  level.empty = false;
  return true;
}

void JsonReader::begin_object() {
  open('{', '}');
}

bool JsonReader::next_key(std::string* key) {
  if (!goes_on("a key")) return false;
  if (peek() != '"') fail("a key");
  *key = string();
  if (peek() != ':') fail("':'");
  ++at_;
  return true;
}

void JsonReader::begin_array() {
  open('[', ']');
}

bool JsonReader::next_item() {
  return goes_on("a value");
}

std::string JsonReader::string() {
  if (peek() != '"') fail("a string");
  ++at_;
  std::string out;
  while (true) {
    if (at_ == text_.size()) fail("the closing quote");
    const char c = text_[at_];
    if (c == '"') break;
    if (c == '\\') {
      append_character(&out, escape());
      continue;
    }
    if (static_cast<unsigned char>(c) < 0x20) fail("no control character in a string");
    const std::size_t size = utf8_size(text_.substr(at_));
    if (size == 0) fail("UTF-8");
    out += text_.substr(at_, size);
    at_ += size;
  }
  ++at_;
  return out;
}

char32_t JsonReader::escape() {
  constexpr std::string_view kNames = "\"\\/bfnrt", kBytes = "\"\\/\b\f\n\r\t";
  ++at_;
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (const std::size_t known = kNames.find(c); c != '\0' && known != std::string_view::npos) {
    ++at_;
    return static_cast<unsigned char>(kBytes[known]);
  }
  if (c != 'u') fail("an escape");
  const char32_t first = unit();
  if (first >= 0xdc00 && first < 0xe000) fail("the first half of a character before the second");
  if (first < 0xd800 || first >= 0xdc00) return first;
  if (!text_.substr(at_).starts_with("\\u")) fail("the second half of a character");
  ++at_;
  const char32_t second = unit();
  if (second < 0xdc00 || second >= 0xe000) fail("the second half of a character");
  return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
}

// The four digits after "\u", of which the u is next.
char32_t JsonReader::unit() {
  const std::string_view digits = text_.substr(at_ + 1, 4);
  std::uint32_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, err] = std::from_chars(digits.data(), end, value, 16);
  if (digits.size() < 4 || stop != end || err != std::errc{}) fail("four hexadecimal digits");
  at_ += 5;
  return value;
}

std::uint64_t JsonReader::whole_number() {
  constexpr const char* kExpected = "an integer from 0 to 2^64 - 1";
  const char c = peek();
  if (c < '0' || c > '9') fail(kExpected);
  std::uint64_t value = 0;
  const char* const start = text_.data() + at_;
  const auto [stop, err] = std::from_chars(start, text_.data() + text_.size(), value);
  const auto size = static_cast<std::size_t>(stop - start);
  const char after = at_ + size < text_.size() ? text_[at_ + size] : '\0';
  const bool leading_zero = c == '0' && size > 1;
  if (err != std::errc{} || leading_zero || after == '.' || after == 'e' || after == 'E')
    fail(kExpected);
  at_ += size;
  return value;
}

bool JsonReader::null() {
  constexpr std::string_view kNull = "null";
  (void)peek();
  if (!text_.substr(at_).starts_with(kNull)) return false;
  at_ += kNull.size();
  return true;
}

void JsonReader::skip_number() {
  const std::size_t start = at_;
  const auto digits = [&] {
    const std::size_t first = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    if (at_ == first) fail("a digit");
    return at_ - first;
  };
  const auto accept = [&](std::string_view any) {
    if (at_ == text_.size() || any.find(text_[at_]) == std::string_view::npos) return false;
    ++at_;
    return true;
  };
  accept("-");
  const std::size_t whole = at_;
  if (digits() > 1 && text_[whole] == '0') {
    at_ = start;
    fail("a number without leading zeros");
  }
  if (accept(".")) digits();
  if (accept("eE")) {
    accept("+-");
    digits();
  }
}

void JsonReader::skip() {
  switch (peek()) {
    case '{': {
      begin_object();
      std::string key;
      while (next_key(&key)) skip();
      return;
    }
    case '[':
      begin_array();
      while (next_item()) skip();
      return;
    case '"':
      (void)string();
      return;
    default:
      break;
  }
  for (const std::string_view word : {"true", "false", "null"}) {
    if (!text_.substr(at_).starts_with(word)) continue;
    at_ += word.size();
    return;
  }
  for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
    if (!not_numbers_ || !text_.substr(at_).starts_with(word)) continue;
    at_ += word.size();
    return;
  }
  const char c = peek();
  if (c != '-' && (c < '0' || c > '9')) fail("a value");
  skip_number();
}

std::string_view JsonReader::value() {
  (void)peek();
  const std::size_t start = at_;
  skip();
  return text_.substr(start, at_ - start);
}

void JsonReader::end() {
  if (peek() != '\0' || at_ < text_.size()) fail("the end of the text");
}

}  // namespace lowtide

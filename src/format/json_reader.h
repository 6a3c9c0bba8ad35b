// json_reader.h - reads JSON from front to back, without building a tree of it.
//
// The caller says what it expects next; anything else is a FormatError. So a hostile text costs
// nothing but the time of one pass: depth is limited, and no memory grows with the text except the
// strings that the caller keeps. It accepts exactly the JSON of RFC 8259 in UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide {

constexpr std::size_t kMaxJsonDepth = 32;

// Every method throws FormatError, which names the byte, what was expected there and what was
// found. One thread. The text is borrowed.
class JsonReader {
 public:
  // With `not_numbers`, the words NaN, Infinity and -Infinity are values too, as Python writes
  // them.
  explicit JsonReader(std::string_view text, bool not_numbers = false)
      : text_(text), not_numbers_(not_numbers) {}

  // An object: begin_object(), then next_key() and one value until it returns false.
  void begin_object();
  [[nodiscard]] bool next_key(std::string* key);
  // An array: begin_array(), then next_item() and one value until it returns false.
  void begin_array();
  [[nodiscard]] bool next_item();

  [[nodiscard]] std::string string();
  // An integer from 0 to 2^64 - 1, without a fraction or an exponent.
  [[nodiscard]] std::uint64_t whole_number();
  // Whether the next value is null; then it has been read.
  [[nodiscard]] bool null();
  // Any value.
  void skip();
  // The same, as the text that it is.
  [[nodiscard]] std::string_view value();
  // Throws unless only blanks are left.
  void end();

  // Throws what the methods throw, for a value that is JSON but not what the caller wants.
  [[noreturn]] void fail(const std::string& expected) const;

 private:
  struct Level {
    char close;  // '}' or ']'
    bool empty = true;
  };

  // The next byte after blanks; NUL at the end. NUL is valid nowhere, so the two cannot be
  // confused.
  [[nodiscard]] char peek();
  void open(char bracket, char close);
  // Whether the innermost level goes on; otherwise it has been closed.
  [[nodiscard]] bool goes_on(const char* item);
  [[nodiscard]] char32_t escape();
  [[nodiscard]] char32_t unit();
  void skip_number();

  std::string_view text_;
  bool not_numbers_;
  std::size_t at_ = 0;
  std::vector<Level> levels_;
};

}  // namespace lowtide

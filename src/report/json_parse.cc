#include <string>
#include <string_view>

#include "core/quote.h"
#include "lowtide/error.h"
#include "report/report.h"

namespace lowtide {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// The top level of one object, parsed just well enough to find a text in it: other values are
// skipped by counting brackets, without validation.
class Fields {
 public:
  Fields(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  // The text of the field with this name.
  std::string text_of(std::string_view name) {
    expect('{');
    while (!at_end() && peek() != '}') {
      const std::string key = string();
      expect(':');
      blanks();
      if (key == name) return string();
      skip();
      blanks();
      if (peek() == ',') ++at_;
      blanks();
    }
    throw FormatError(path_ + ": not a report of lowtide profile: it has no field \"" +
                      std::string(name) +
                      "\"; reports by older versions of lowtide cannot be read back");
  }

 private:
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek() const {
    if (at_end()) fail("the text ends too early");
    return text_[at_];
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw FormatError(path_ + ": byte " + std::to_string(at_) + ": " + why);
  }
  void blanks() { at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size()); }
  void expect(char wanted) {
    blanks();
    if (peek() != wanted) {
      fail(std::string("expected ") + wanted + ", found " + excerpt(text_.substr(at_, 20)));
    }
    ++at_;
    blanks();
  }

  std::string string() {
    expect_quote();
    std::string out;
    while (peek() != '"') {
      const char c = text_[at_++];
      if (c == '\\') {
        append_escaped(&out);
      } else {
        out += c;
      }
    }
    ++at_;
    return out;
  }
  void expect_quote() {
    if (peek() != '"') fail("expected a string, found " + excerpt(text_.substr(at_, 20)));
    ++at_;
  }
  void append_escaped(std::string* out) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kBytes = "\"\\/\b\f\n\r\t";
    const char c = peek();
    ++at_;
    if (const std::size_t found = kNames.find(c); found != std::string_view::npos) {
      *out += kBytes[found];
      return;
    }
    if (c != 'u') fail("expected a JSON escape, found " + excerpt(std::string{'\\', c}));
    char32_t code = unit();
    const bool first_half = code >= 0xd800 && code < 0xdc00;
    if (first_half && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      code = 0x10000 + ((code - 0xd800) << 10) + (unit() & 0x3ff);
    }
    append_utf8(out, code);
  }
  // Four hexadecimal digits.
  char32_t unit() {
    if (text_.size() - at_ < 4) fail("the text ends within an escape");
    char32_t code = 0;
    for (int i = 0; i < 4; ++i) {
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(static_cast<char>(text_[at_] | 0x20));
      if (digit == std::string_view::npos) fail("expected four hexadecimal digits of an escape");
      code = code * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    return code;
  }
  static void append_utf8(std::string* out, char32_t code) {
    const auto put = [&](char32_t byte) { *out += static_cast<char>(byte); };
    const auto put_rest = [&](int shift) { put(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
      put(0xc0 | code >> 6);
      return put_rest(0);
    }
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
      put_rest(6);
      return put_rest(0);
    }
    put(0xf0 | code >> 18);
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }

  void skip() {
    std::size_t depth = 0;
    do {
      const char c = peek();
      if (c == '"') {
        (void)string();
        continue;
      }
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']' || c == ',') {
        if (depth == 0) return;
        if (c != ',') --depth;
      }
      ++at_;
    } while (depth > 0 || (peek() != ',' && peek() != '}'));
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

Trace parse_json(std::string_view text, const std::string& path) {
  return parse_trace(Fields(text, path).text_of("trace"), path + ", field \"trace\"");
}

}  // namespace lowtide

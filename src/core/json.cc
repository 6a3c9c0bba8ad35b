#include "lowtide/command/json.h"

#include <charconv>
#include <cmath>
#include <stdexcept>

#include "core/utf8.h"

namespace lowtide {
namespace {

void append_unit(std::string* out, std::uint32_t unit) {
  constexpr std::string_view kHex = "0123456789abcdef";
  *out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) *out += kHex[unit >> shift & 15];
}

// JSON escapes UTF-16 units: a character beyond U+FFFF takes two.
void append_escape(std::string* out, char32_t code) {
  if (code < 0x10000) return append_unit(out, code);
  append_unit(out, 0xd800 + ((code - 0x10000) >> 10));
  append_unit(out, 0xdc00 + (code & 0x3ff));
}

}  // namespace

JsonWriter& JsonWriter::begin_object() {
  return open('{', true);
}
JsonWriter& JsonWriter::end_object() {
  return close('}', true);
}
JsonWriter& JsonWriter::begin_array() {
  return open('[', false);
}
JsonWriter& JsonWriter::end_array() {
  return close(']', false);
}

JsonWriter& JsonWriter::key(std::string_view name) {
  if (levels_.empty() || !levels_.back().object || after_key_) {
    throw std::logic_error("JSON: a key is not allowed here: " + std::string(name));
  }
  if (!levels_.back().empty) out_ += ',';
  levels_.back().empty = false;
  quote(name);
  out_ += ':';
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::null() {
  return raw("null");
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  return raw({digits, static_cast<std::size_t>(end - digits)});
}

const std::string& JsonWriter::text() const {
  if (!levels_.empty()) throw std::logic_error("JSON: an object or array is still open");
  return out_;
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  before_value();
  out_ += text;
  return *this;
}

JsonWriter& JsonWriter::open(char bracket, bool object) {
  before_value();
  out_ += bracket;
  levels_.push_back({object, true});
  return *this;
}

JsonWriter& JsonWriter::close(char bracket, bool object) {
  if (levels_.empty() || levels_.back().object != object || after_key_) {
    throw std::logic_error(std::string("JSON: unexpected ") + bracket);
  }
  levels_.pop_back();
  out_ += bracket;
  return *this;
}

void JsonWriter::before_value() {
  if (levels_.empty()) {
    if (!out_.empty()) throw std::logic_error("JSON: the text already has its one value");
    return;
  }
  Level& level = levels_.back();
  if (level.object) {
    if (!after_key_) throw std::logic_error("JSON: a value in an object needs a key");
    after_key_ = false;
    return;
  }
  if (!level.empty) out_ += ',';
  level.empty = false;
}

// Hidden characters are escaped although JSON allows most of them, because people read it on
// terminals too.
void JsonWriter::quote(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const Utf8Character next = first_utf8(text);
    if (next.bytes == 0) {
      out_ += "\xef\xbf\xbd";
    } else if (next.code == '"' || next.code == '\\') {
      out_ += '\\';
      out_ += text.front();
    } else if (next.code == '\n') {
      out_ += "\\n";
    } else if (is_hidden(next.code)) {
      append_escape(&out_, next.code);
    } else {
      out_ += text.substr(0, next.bytes);
    }
    text.remove_prefix(next.bytes == 0 ? 1 : next.bytes);
  }
  out_ += '"';
}

}  // namespace lowtide

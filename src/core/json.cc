#include "lowtide/json.h"

#include <charconv>
#include <cmath>
#include <stdexcept>

#include "core/utf8.h"

namespace lowtide {

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
    throw std::logic_error("JSON: a key has no place here: " + std::string(name));
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
  if (!levels_.empty()) throw std::logic_error("JSON: an object or array was not ended");
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
    throw std::logic_error(std::string("JSON: nothing ends here with ") + bracket);
  }
  levels_.pop_back();
  out_ += bracket;
  return *this;
}

void JsonWriter::before_value() {
  if (levels_.empty()) {
    if (!out_.empty()) throw std::logic_error("JSON: one text has one value");
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

void JsonWriter::quote(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out_ += '"';
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (size == 0) {
      out_ += "\xef\xbf\xbd";
    } else if (byte == '"' || byte == '\\') {
      out_ += '\\';
      out_ += text.front();
    } else if (byte == '\n') {
      out_ += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out_ += "\\u00";
      out_ += kHex[byte >> 4];
      out_ += kHex[byte & 15];
    } else {
      out_ += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out_ += '"';
}

}  // namespace lowtide

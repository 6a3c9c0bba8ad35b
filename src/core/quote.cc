#include "core/quote.h"

#include <cstddef>

#include "core/utf8.h"
#include "lowtide/command/terminal.h"

namespace lowtide {
namespace {

constexpr std::size_t kExcerptBytes = 60;

void append_escaped(std::string& out, unsigned char byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (byte) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
  }
}

std::string quote(std::string_view text, unsigned first_escaped_byte) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char mark = has_single && !has_double ? '"' : '\'';
  std::string out(1, mark);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == mark || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f || byte >= first_escaped_byte) {
      append_escaped(out, byte);
    } else {
      out += c;
    }
  }
  out += mark;
  return out;
}

}  // namespace

std::string python_repr(std::string_view text) {
  return quote(text, 0x100);
}

std::string excerpt(std::string_view bytes) {
  std::string out = quote(bytes.substr(0, kExcerptBytes), 0x80);
  if (bytes.size() > kExcerptBytes) out += "...";
  return out;
}

std::string shown(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const Utf8Character next = first_utf8(bytes.substr(at));
    if (next.bytes == 0 || is_hidden(next.code)) return quote(bytes, 0x80);
    at += next.bytes;
  }
  return std::string(bytes);
}

std::string grouped(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string visible_text(std::string_view bytes, bool ascii_only) {
  std::string out;
  while (!bytes.empty()) {
    const Utf8Character next = first_utf8(bytes);
    const std::string_view character = bytes.substr(0, next.bytes == 0 ? 1 : next.bytes);
    if (next.bytes != 0 && !is_hidden(next.code) && (!ascii_only || next.code < 0x80)) {
      out += character;
    } else {
      for (const char c : character) append_escaped(out, static_cast<unsigned char>(c));
    }
    bytes.remove_prefix(character.size());
  }
  return out;
}

}  // namespace lowtide

#include <algorithm>
#include <string>

#include "lowtide/bytes.h"
#include "lowtide/command/terminal.h"
#include "terminal.h"

namespace lowtide::cli {
namespace {

struct Range {
  char32_t first, last;
};

// Whole blocks instead of a full table of widths: enough to keep columns aligned for common names.
constexpr Range kMarks[] = {
    {0x300, 0x36f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};
constexpr Range kWide[] = {{0x1100, 0x115f}, {0x2e80, 0x303e},   {0x3041, 0xa4cf},
                           {0xac00, 0xd7a3}, {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
                           {0xff00, 0xff60}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

template <std::size_t N>
bool inside(char32_t code, const Range (&ranges)[N]) {
  return std::ranges::any_of(
      ranges, [&](const Range& range) { return code >= range.first && code <= range.last; });
}

// The length of the escape sequence at the start of `text`; 0: there is none.
std::size_t sequence_bytes(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end == std::string_view::npos ? text.size() : end + 1;
}

// Terminal columns: 0 for combining marks, 2 for wide characters, else 1.
std::size_t columns_of(char32_t code) {
  return inside(code, kMarks) ? 0 : inside(code, kWide) ? 2 : 1;
}

}  // namespace

std::string shown(std::string_view text, const Terminal& on) {
  return visible_text(text, !on.unicode);
}

std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    std::size_t bytes = sequence_bytes(text);
    if (bytes == 0) {
      const Utf8Character next = first_utf8(text);
      width += columns_of(next.code);
      bytes = std::max<std::size_t>(next.bytes, 1);
    }
    text.remove_prefix(std::min(bytes, text.size()));
  }
  return width;
}

std::string cut_start(std::string_view text, std::size_t columns, const Terminal& on) {
  std::size_t width = width_of(text);
  if (width <= columns) return std::string(text);
  const std::string mark = on.unicode ? "…" : "...";
  const std::size_t most = columns - std::min(columns, width_of(mark));
  while (width > most && !text.empty()) {
    const Utf8Character next = first_utf8(text);
    width -= columns_of(next.code);
    text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
  return mark + std::string(text);
}

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent) {
  constexpr std::size_t kLeastColumns = 8;
  if (columns < kLeastColumns) return std::string(text);
  std::string out;
  std::size_t at = 0;
  while (!text.empty()) {
    const std::size_t space = text.find(' ', 1);
    const std::string_view word = text.substr(0, space);
    const std::size_t width = width_of(word);
    if (at != 0 && at + width > columns) {
      out += "\n" + std::string(indent, ' ') + std::string(word.substr(1));
      at = width - 1;
    } else {
      out += word;
      at += width;
    }
    text.remove_prefix(word.size());
  }
  return out;
}

std::string either(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i) {
    list += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  }
  return list;
}

std::string bytes_text(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(*bytes) : "unknown";
}

std::string percent_text(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  if (part >= whole) return "100 %";
  const double tenths = static_cast<double>(part) / static_cast<double>(whole) * 1000;
  const auto rounded = std::min<std::uint64_t>(static_cast<std::uint64_t>(tenths + 0.5), 999);
  if (rounded == 0) return part == 0 ? "0 %" : "<0.1 %";
  return std::to_string(rounded / 10) + "." + std::to_string(rounded % 10) + " %";
}

std::string rate_text(std::uint64_t bytes, double seconds) {
  if (seconds <= 0) return "-";
  return format_bytes(static_cast<std::uint64_t>(static_cast<double>(bytes) / seconds)) + "/s";
}

}  // namespace lowtide::cli

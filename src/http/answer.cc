#include "http/answer.h"

#include <charconv>

namespace lowtide {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// The text as a number, all of it digits.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool same_name(std::string_view name, std::string_view lower_case) {
  if (name.size() != lower_case.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != lower_case[i])
      return false;
  }
  return true;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
  text = trimmed(text);
  constexpr std::string_view kUnit = "bytes ";
  if (text.size() < kUnit.size() || !same_name(text.substr(0, kUnit.size()), kUnit)) return {};
  text = trimmed(text.substr(kUnit.size()));
  const std::size_t slash = text.find('/');
  if (slash == text.npos) return {};
  ContentRange range;
  const std::string_view total = text.substr(slash + 1);
  if (total != "*") {
    range.total = whole_number(total);
    if (!range.total) return {};
  }
  const std::string_view bytes = text.substr(0, slash);
  if (bytes == "*") return range.total ? std::optional(range) : std::nullopt;
  const std::size_t dash = bytes.find('-');
  if (dash == bytes.npos) return {};
  const auto first = whole_number(bytes.substr(0, dash)),
             last = whole_number(bytes.substr(dash + 1));
  if (!first || !last || *first > *last || (range.total && *last >= *range.total)) return {};
  range.first = *first;
  range.last = *last;
  return range;
}

void Answer::clear() {
  status = 0;
  range.reset();
  bad_range = encoded = false;
  length_bytes.reset();
  retry_after_s = 0;
  etag.clear();
  modified.clear();
  location.clear();
}

void Answer::take_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    clear();
    const std::size_t blank = line.find(' ');
    if (blank != line.npos) {
      status = static_cast<int>(whole_number(trimmed(line.substr(blank, 4))).value_or(0));
    }
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return;
  const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
  if (same_name(name, "content-range")) {
    range = parse_content_range(value);
    bad_range = !range;
  } else if (same_name(name, "content-length")) {
    length_bytes = whole_number(value);
  } else if (same_name(name, "content-encoding")) {
    encoded = !value.empty() && !same_name(value, "identity");
  } else if (same_name(name, "etag")) {
    etag = value;
  } else if (same_name(name, "last-modified")) {
    modified = value;
  } else if (same_name(name, "location")) {
    location = value;
  } else if (same_name(name, "retry-after")) {
    retry_after_s = whole_number(value).value_or(0);
  }
}

}  // namespace lowtide

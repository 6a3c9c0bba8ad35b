// answer.h - the head of an HTTP answer, line by line as it arrives. Pure text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lowtide {

// "bytes 0-99/1000", or "bytes */1000" with `last` < `first`.
struct ContentRange {
  std::uint64_t first = 1;
  std::uint64_t last = 0;
  std::optional<std::uint64_t> total;

  [[nodiscard]] bool has_bytes() const { return first <= last; }
};
[[nodiscard]] std::optional<ContentRange> parse_content_range(std::string_view text);

// What is kept of an answer. Strings keep their room, so that a head that is reused allocates
// nothing for an answer like the one before.
struct Answer {
  int status = 0;  // 0: no answer yet
  std::optional<ContentRange> range;
  bool bad_range = false;  // there was a Content-Range, but it cannot be read
  bool encoded = false;    // compressed: its bytes are not those of the object
  std::optional<std::uint64_t> length_bytes;
  std::uint64_t retry_after_s = 0;
  std::string etag;      // as it was sent, with its quotes
  std::string modified;  // Last-Modified
  std::string location;

  // A line with or without its line end. A status line begins a new answer: 1xx answers precede
  // the real one.
  void take_line(std::string_view line);
  void clear();
  // Whether `etag` names exactly these bytes; a weak one ("W/...") does not.
  [[nodiscard]] bool has_strong_etag() const { return etag.size() > 1 && etag.front() == '"'; }
};

}  // namespace lowtide

// xml.h - is it well-formed? Enough of XML for what the project writes.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace lowtide {

// What is wrong with a document of one root element; empty when nothing is. Knows elements,
// attributes in double quotes, text and the five named entities.
inline std::string xml_fault(std::string_view text) {
  std::vector<std::string> open;
  std::size_t roots = 0, at = 0;
  const auto near = [&] { return " near \"" + std::string(text.substr(at, 60)) + "\""; };
  while (at < text.size()) {
    if (text[at] == '&') {
      const std::string_view rest = text.substr(at);
      const std::vector<std::string_view> known{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
      if (std::ranges::none_of(known, [&](auto one) { return rest.starts_with(one); })) {
        return "bad entity" + near();
      }
    }
    if (text[at] != '<') {
      if (open.empty() && text[at] != '\n') return "text outside" + near();
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    for (bool quoted = false; end < text.size() && (quoted || text[end] != '>'); ++end) {
      if (text[end] == '"') quoted = !quoted;
      if (text[end] == '<') return "< within a tag" + near();
    }
    if (end == text.size()) return "tag without an end" + near();
    const std::string_view tag = text.substr(at + 1, end - at - 1);
    const std::string name(tag.substr(0, tag.find_first_of(" /\n")));
    if (tag.starts_with('/')) {
      if (open.empty() || "/" + open.back() != tag) return "wrong closing tag" + near();
      open.pop_back();
    } else {
      if (name.empty()) return "no name" + near();
      if (open.empty() && ++roots > 1) return "a second root" + near();
      if (!tag.ends_with('/')) open.push_back(name);
    }
    at = end + 1;
  }
  return !open.empty() ? "never closed: " + open.back() : roots == 0 ? "no element" : "";
}

}  // namespace lowtide

#include "job/facts.h"

#include <charconv>
#include <span>
#include <stdexcept>

#include "core/hash.h"
#include "core/quote.h"

namespace lowtide {
namespace {

// Changes with every change of what plans, runs or folders of jobs look like.
constexpr std::string_view kFirstLine = "lowtide plan 1";

std::uint64_t text_hash(std::string_view text) {
  return hash_with(0, std::as_bytes(std::span(text)));
}

std::string escaped(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\') {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (!escape) {
      out += text[i];
    } else {
      out += text[++i] == 'n' ? '\n' : text[i];
    }
  }
  return out;
}

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("this is not the text of a plan: " + why);
}

}  // namespace

std::uint64_t parse_number(std::string_view name, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    refuse("expected a number for \"" + std::string(name) + "\", found " + excerpt(text));
  }
  return value;
}

void Facts::add(std::string name, std::string value) {
  facts_.emplace_back(std::move(name), std::move(value));
}

const std::string* Facts::find(std::string_view name) const {
  for (const auto& [known, value] : facts_) {
    if (known == name) return &value;
  }
  return nullptr;
}

const std::string& Facts::at(std::string_view name) const {
  if (const std::string* const value = find(name)) return *value;
  refuse("it lacks \"" + std::string(name) + "\"");
}

std::uint64_t Facts::number(std::string_view name) const {
  return parse_number(name, at(name));
}

std::optional<std::uint64_t> Facts::find_number(std::string_view name) const {
  const std::string* const value = find(name);
  return value != nullptr ? std::optional(parse_number(name, *value)) : std::nullopt;
}

std::vector<std::string> Facts::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [known, value] : facts_) {
    if (known == name) values.push_back(value);
  }
  return values;
}

std::uint64_t Facts::hash() const {
  return text_hash(text());
}

std::string Facts::text() const {
  std::string out = std::string(kFirstLine) + "\n";
  for (const auto& [name, value] : facts_) out += name + " " + escaped(value) + "\n";
  return out + "sum " + hex_text(text_hash(out)) + "\n";
}

Facts Facts::parse(std::string_view text) {
  const std::string_view first = text.substr(0, text.find('\n'));
  if (!first.starts_with("lowtide plan ")) refuse("it begins with " + excerpt(first));
  if (first != kFirstLine) {
    throw std::invalid_argument("this plan was made by another version of Lowtide (\"" +
                                std::string(first.substr(0, 40)) + "\", not \"" +
                                std::string(kFirstLine) + "\"); plan again with this one");
  }
  const std::size_t last = text.rfind("\nsum ");
  if (last == std::string_view::npos) refuse("it ends early");
  const std::string_view body = text.substr(0, last + 1);
  if (text.substr(last + 1) != "sum " + hex_text(text_hash(body)) + "\n")
    refuse("its checksum is wrong; it was changed or cut");
  Facts facts;
  for (std::string_view rest = body.substr(first.size() + 1); !rest.empty();) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos)
      refuse("expected a name and a value, found " + excerpt(line));
    facts.add(std::string(line.substr(0, space)), unescaped(line.substr(space + 1)));
    rest = rest.substr(end + 1);
  }
  return facts;
}

}  // namespace lowtide

#include "http/listing.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "http/address.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

[[noreturn]] void refuse_listing(std::string_view shown, const std::string& why) {
  throw FormatError(std::string(shown) + ": the list of objects cannot be read: " + why);
}

void append_utf8(std::string* out, std::uint32_t code) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::uint32_t kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  *out += static_cast<char>(kFirst[more] | (code >> (6 * more)));
  for (int left = more - 1; left >= 0; --left)
    *out += static_cast<char>(0x80 | ((code >> (6 * left)) & 0x3F));
}

// "#233" or "#xE9", as the number of a character.
std::optional<std::uint32_t> numbered(std::string_view name) {
  if (!name.starts_with('#')) return std::nullopt;
  name.remove_prefix(1);
  const bool hex = name.starts_with('x') || name.starts_with('X');
  if (hex) name.remove_prefix(1);
  std::uint32_t code = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data(), end, code, hex ? 16 : 10);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (name.empty() || error != std::errc() || stop != end || code > 0x10FFFF || surrogate)
    return std::nullopt;
  return code;
}

// The text of an element, with its entities replaced.
std::string plain(std::string_view text, std::string_view shown) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find('&'), text.size());
    out += text.substr(0, begin);
    text.remove_prefix(begin);
    if (text.empty()) break;
    const std::size_t end = text.find(';');
    const std::string_view name = text.substr(1, end == text.npos ? 0 : end - 1);
    const auto* const named =
        std::ranges::find(kNamed, name, [](const auto& pair) { return pair.first; });
    if (named != std::end(kNamed)) {
      out += named->second;
    } else if (const std::optional<std::uint32_t> code = numbered(name)) {
      append_utf8(&out, *code);
    } else {
      refuse_listing(shown, "it contains an unknown character reference");
    }
    text.remove_prefix(end + 1);
  }
  return out;
}

// What is between <name> and </name> at or behind `*from`, which moves behind it. Elements that we
// ask for have no attributes and none of their own kind inside.
std::optional<std::string_view> element(std::string_view text, std::string_view name,
                                        std::size_t* from) {
  const std::string open = "<" + std::string(name) + ">", close = "</" + std::string(name) + ">";
  const std::size_t begin = text.find(open, *from);
  if (begin == text.npos) return std::nullopt;
  const std::size_t end = text.find(close, begin + open.size());
  if (end == text.npos) return std::nullopt;
  *from = end + close.size();
  return text.substr(begin + open.size(), end - begin - open.size());
}

std::optional<std::string_view> first_element(std::string_view text, std::string_view name) {
  std::size_t from = 0;
  return element(text, name, &from);
}

// Where the path of an address begins: behind its host, or behind "s3://".
std::size_t path_begin(std::string_view address) {
  const std::size_t authority = address.find("://") + 3;
  return std::min(address.find('/', authority), address.size());
}

std::size_t first_special(std::string_view address) {
  const bool bucket = parse_scheme(address) == "s3";
  return address.find_first_of(bucket ? "*?[" : "*", path_begin(address));
}

}  // namespace

std::string listing_query(std::string_view prefix, bool deep, std::string_view next) {
  std::string query = "?";
  if (!next.empty()) query += "continuation-token=" + percent_encoded(next) + "&";
  if (!deep) query += "delimiter=%2F&";
  return query + "list-type=2&prefix=" + percent_encoded(prefix);
}

ListingPage parse_listing(std::string_view xml, std::string_view shown) {
  if (xml.find("<ListBucketResult") == xml.npos) {
    refuse_listing(shown, "the server returned something else");
  }
  if (xml.find("</ListBucketResult>") == xml.npos) refuse_listing(shown, "it ends early");
  ListingPage page;
  for (std::size_t from = 0;;) {
    const std::optional<std::string_view> object = element(xml, "Contents", &from);
    if (!object) break;
    const std::optional<std::string_view> key = first_element(*object, "Key");
    if (!key || key->empty()) refuse_listing(shown, "an object has no name");
    page.keys.push_back(plain(*key, shown));
  }
  if (first_element(xml, "IsTruncated") != "true") return page;
  const std::optional<std::string_view> next = first_element(xml, "NextContinuationToken");
  if (!next || next->empty())
    refuse_listing(shown, "it is truncated, but lacks the token that continues it");
  page.next = plain(*next, shown);
  return page;
}

bool is_listed(std::string_view address) {
  const std::string scheme = parse_scheme(address);
  if (scheme.empty()) return false;
  const std::string path = scheme == "s3" ? std::string(address) : shown_address(address);
  return first_special(path) != path.npos ||
         (path.ends_with('/') && path_begin(path) < path.size());
}

ListedAddress listed_address(std::string_view address) {
  ListedAddress found;
  const std::size_t special = first_special(address);
  found.beginning = address.substr(0, special);
  found.folder = special == address.npos;
  found.deep = !found.folder && address.find('/', special) != address.npos;
  return found;
}

}  // namespace lowtide

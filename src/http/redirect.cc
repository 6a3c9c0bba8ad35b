#include "http/redirect.h"

#include <algorithm>
#include <stdexcept>

namespace lowtide {
namespace {

// Whether the text begins with a scheme: letters, digits, '+', '-' or '.', then ':'.
bool has_scheme(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon == 0) return false;
  return std::ranges::all_of(text.substr(0, colon), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
  });
}

std::string absolute(const Address& from, std::string_view location) {
  if (has_scheme(location)) return std::string(location);
  if (location.starts_with("//")) return from.scheme + ":" + std::string(location);
  const std::string server =
      from.scheme + "://" + from.host + (from.port.empty() ? "" : ":") + from.port;
  if (location.starts_with('/')) return server + std::string(location);
  if (location.starts_with('?')) return server + from.path + std::string(location);
  return server + from.path.substr(0, from.path.rfind('/') + 1) + std::string(location);
}

}  // namespace

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::optional<Address> redirected(const Address& from, std::string_view location) {
  if (location.empty()) return std::nullopt;
  try {
    Address to = parse_http(absolute(from, location));
    if (from.scheme == "https" && to.scheme == "http") return std::nullopt;
    if (is_inner_host(to.host) && !is_inner_host(from.host)) return std::nullopt;
    to.user_info.clear();
    return to;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace lowtide

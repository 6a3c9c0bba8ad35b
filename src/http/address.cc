#include "http/address.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

namespace lowtide {
namespace {

constexpr std::array<std::string_view, 3> kSchemes = {"http://", "https://", "s3://"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter_or_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_unreserved(char c) {
  return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == '~';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

void append_encoded(std::string* out, char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  *out += '%';
  *out += kDigits[byte >> 4];
  *out += kDigits[byte & 15];
}

// The length of the scheme with its "://"; 0 for a text that is no address.
std::size_t scheme_length(std::string_view text) {
  for (const std::string_view scheme : kSchemes) {
    if (lower(text.substr(0, scheme.size())) == scheme) return scheme.size();
  }
  return 0;
}

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw std::invalid_argument(shown_address(text) + ": " + why);
}

// Keeps what a URL may contain, with its percent signs, and encodes the rest.
std::string kept_or_encoded(std::string_view text, std::string_view reserved) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool escape =
        c == '%' && i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2]);
    if (escape || is_unreserved(c) || reserved.find(c) != reserved.npos) {
      out += c;
    } else {
      append_encoded(&out, c);
    }
  }
  return out;
}

void check_host(std::string_view text, std::string_view host) {
  if (host.empty()) refuse(text, "the address has no host");
  const bool brackets = host.front() == '[' && host.back() == ']' && host.size() > 2;
  const std::string_view inner = brackets ? host.substr(1, host.size() - 2) : host;
  const bool fine = std::ranges::all_of(inner, [&](char c) {
    return brackets ? is_hex(c) || c == ':' || c == '.'
                    : is_letter_or_digit(c) || c == '-' || c == '.' || c == '_';
  });
  if (!fine) refuse(text, "the host of the address contains an invalid character");
}

void split_authority(std::string_view text, std::string_view authority, Address* out) {
  const std::size_t at = authority.rfind('@');
  if (at != authority.npos) {
    out->user_info = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.rfind(':');
  if (colon != authority.npos && (bracket == authority.npos || colon > bracket)) {
    out->port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
    const bool digits = std::ranges::all_of(out->port, is_digit);
    if (!digits || out->port.size() > 5 || (!out->port.empty() && std::stoul(out->port) > 65535)) {
      refuse(text, "the port of the address is not a number from 0 to 65535");
    }
  }
  out->host = lower(authority);
  check_host(text, out->host);
}

// The four bytes of a dotted IPv4 address; false for anything else.
bool parse_ipv4(std::string_view host, std::array<std::uint32_t, 4>* out) {
  for (std::size_t part = 0; part < out->size(); ++part) {
    const std::size_t dot = std::min(host.find('.'), host.size());
    const std::string_view digits = host.substr(0, dot);
    if (digits.empty() || digits.size() > 3 || !std::ranges::all_of(digits, is_digit)) return false;
    (*out)[part] = static_cast<std::uint32_t>(std::stoul(std::string(digits)));
    if ((*out)[part] > 255) return false;
    const bool last = part + 1 == out->size();
    if ((dot == host.size()) != last) return false;
    host.remove_prefix(last ? dot : dot + 1);
  }
  return true;
}

// An IPv6 address without brackets that stands for an IPv4 one: "::ffff:127.0.0.1".
std::string_view without_mapping(std::string_view host) {
  constexpr std::string_view kMapped = "::ffff:";
  return host.starts_with(kMapped) ? host.substr(kMapped.size()) : host;
}

}  // namespace

bool is_address(std::string_view text) {
  return scheme_length(text) != 0;
}

std::string parse_scheme(std::string_view text) {
  const std::size_t length = scheme_length(text);
  return length == 0 ? "" : lower(text.substr(0, length - 3));
}

std::string shown_address(std::string_view text) {
  const std::size_t scheme = scheme_length(text);
  if (scheme == 0) return std::string(text);
  const bool bucket = lower(text.substr(0, scheme)) == "s3://";
  // The key of an object in a bucket may contain any character.
  const std::size_t end = bucket ? text.size() : std::min(text.find_first_of("?#"), text.size());
  std::string_view rest = text.substr(scheme, end - scheme);
  std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::size_t at = rest.substr(0, slash).rfind('@');
  if (at != rest.npos) {
    rest.remove_prefix(at + 1);
    slash -= at + 1;
  }
  // A password with a '/', '?' or '#' ends too early: then its begin stands where the host should.
  const bool plain = std::ranges::all_of(rest.substr(0, slash), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_' || c == ':' || c == '[' ||
           c == ']';
  });
  const std::size_t colon = rest.substr(0, slash).rfind(':');
  const bool port = !bucket && colon != rest.npos &&
                    (rest.front() == '[' ||
                     std::ranges::all_of(rest.substr(colon + 1, slash - colon - 1), is_digit));
  if (!plain || (colon != rest.npos && !port)) {
    return std::string(text.substr(0, scheme)) + "(malformed)";
  }
  return std::string(text.substr(0, scheme)) + std::string(rest);
}

bool has_secret(std::string_view text) {
  return is_address(text) && shown_address(text) != text;
}

std::string Address::url() const {
  return scheme + "://" + (user_info.empty() ? "" : user_info + "@") + host +
         (port.empty() ? "" : ":" + port) + path + query;
}

std::string Address::origin() const {
  const std::string usual = scheme == "https" ? "443" : "80";
  return scheme + "://" + host + ":" + (port.empty() ? usual : port);
}

Address parse_http(std::string_view text) {
  const std::size_t scheme = scheme_length(text);
  Address out;
  out.scheme = lower(text.substr(0, scheme < 3 ? 0 : scheme - 3));
  if (out.scheme != "http" && out.scheme != "https") {
    refuse(text, "the address must begin with http:// or https://");
  }
  if (std::ranges::any_of(text, is_control)) {
    throw std::invalid_argument(
        "the address contains a control character; percent-encode it, for example as %0A");
  }
  std::string_view rest = text.substr(scheme);
  rest = rest.substr(0, rest.find('#'));
  const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
  split_authority(text, rest.substr(0, end), &out);
  rest.remove_prefix(end);
  const std::size_t question = std::min(rest.find('?'), rest.size());
  out.path = kept_or_encoded(rest.substr(0, question), "/!$&'()*+,;=:@");
  if (out.path.empty()) out.path = "/";
  if (question < rest.size()) {
    out.query = "?" + kept_or_encoded(rest.substr(question + 1), "/?!$&'()*+,;=:@");
  }
  return out;
}

S3Name parse_s3(std::string_view text) {
  const std::size_t scheme = scheme_length(text);
  if (lower(text.substr(0, scheme)) != "s3://") refuse(text, "the address must begin with s3://");
  const std::string_view rest = text.substr(scheme);
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  S3Name name{.bucket = std::string(rest.substr(0, slash)), .key = {}};
  const bool fine = std::ranges::all_of(name.bucket, [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_';
  });
  if (name.bucket.empty() || !fine || name.bucket.starts_with('.')) {
    refuse(text, "the name of the bucket is not valid; expected s3://bucket/key");
  }
  name.key = slash < rest.size() ? rest.substr(slash + 1) : "";
  if (name.key.empty())
    refuse(text, "the address names a bucket but no object; expected s3://bucket/key");
  return name;
}

std::string address_in(std::string_view folder, std::string_view name) {
  const bool bucket = parse_scheme(folder) == "s3";
  const std::size_t end =
      bucket ? folder.size() : std::min(folder.find_first_of("?#"), folder.size());
  std::string path(folder.substr(0, end));
  if (!path.ends_with('/')) path += '/';
  path += bucket ? std::string(name) : percent_encoded(name, "/");
  return path + std::string(folder.substr(end));
}

Address s3_address(const S3Name& name, const S3Place& place) {
  const std::string key = "/" + percent_encoded(name.key, "/");
  if (place.endpoint) {
    Address out = parse_http(*place.endpoint);
    while (out.path.ends_with('/')) out.path.pop_back();
    out.path += "/" + percent_encoded(name.bucket) + key;
    out.query.clear();
    return out;
  }
  const std::string server = "s3." + place.region + ".amazonaws.com";
  if (name.bucket.find('.') != name.bucket.npos) {
    return parse_http("https://" + server + "/" + name.bucket + key);
  }
  return parse_http("https://" + name.bucket + "." + server + key);
}

std::string percent_encoded(std::string_view text, std::string_view also) {
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c) || also.find(c) != also.npos) {
      out += c;
    } else {
      append_encoded(&out, c);
    }
  }
  return out;
}

bool is_loopback(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  while (host.ends_with('.')) host.remove_suffix(1);
  const std::string name = lower(host);
  std::array<std::uint32_t, 4> bytes{};
  if (parse_ipv4(without_mapping(name), &bytes)) return bytes[0] == 127 || bytes[0] == 0;
  return name == "localhost" || name.ends_with(".localhost") || name == "::1" || name == "::" ||
         name == "0:0:0:0:0:0:0:1" || name == "0:0:0:0:0:0:0:0";
}

bool is_inner_host(std::string_view host) {
  if (is_loopback(host)) return true;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string name = lower(host);
  std::array<std::uint32_t, 4> bytes{};
  if (parse_ipv4(without_mapping(name), &bytes)) return bytes[0] == 169 && bytes[1] == 254;
  return name.size() > 4 && name.starts_with("fe") &&
         (name[2] == '8' || name[2] == '9' || name[2] == 'a' || name[2] == 'b') &&
         name.find(':') != name.npos;
}

}  // namespace lowtide

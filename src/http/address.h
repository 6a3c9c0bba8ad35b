// address.h - what a user calls an object: http://, https:// or s3://bucket/key. Pure text.
//
// Nothing but shown_address() may go into a message, a path that is displayed, a pickle or a state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lowtide/address.h"

namespace lowtide {

// "http", "https", "s3", or empty for a text that is no address.
[[nodiscard]] std::string parse_scheme(std::string_view text);

// A parsed address, ready to be requested: `path` and `query` are percent-encoded.
struct Address {
  std::string scheme;     // "http" or "https"
  std::string user_info;  // "user:password" as it was written; empty if there is none
  std::string host;       // lower case; an IPv6 address with its brackets
  std::string port;       // digits; empty: the port of the scheme
  std::string path;       // begins with '/'
  std::string query;      // begins with '?', or is empty

  [[nodiscard]] std::string url() const;
  // "https://host:port", which two addresses of the same server share.
  [[nodiscard]] std::string origin() const;
};

// Parses http:// and https://. A '%' with two hexadecimal digits stays; other characters that a URL
// must not contain are encoded. Throws std::invalid_argument, without a secret in its text, for
// control characters, a missing or malformed host and a wrong port.
[[nodiscard]] Address parse_http(std::string_view text);

// s3://bucket/key. The key is the object's name as it is: every character outside of A-Z a-z 0-9
// - . _ ~ / is encoded, also '%', '+', '?' and '#'. Throws std::invalid_argument.
struct S3Name {
  std::string bucket;
  std::string key;
};
[[nodiscard]] S3Name parse_s3(std::string_view text);

// The address of the object `name` in a folder, whose address may end with '/'. A query of the
// folder stays behind the path. In http:// and https:// the name is encoded.
[[nodiscard]] std::string address_in(std::string_view folder, std::string_view name);

// Where buckets are. With an endpoint: endpoint/bucket/key. Without: the host of AWS for the bucket
// and the region; a bucket with a dot, for which the certificate of that host is not valid, is part
// of the path instead.
struct S3Place {
  std::optional<std::string> endpoint;  // http://host:port or https://host, perhaps with a path
  std::string region;
};
[[nodiscard]] Address s3_address(const S3Name& name, const S3Place& place);

// Encodes every byte outside of A-Z a-z 0-9 - . _ ~ and `also`.
[[nodiscard]] std::string percent_encoded(std::string_view text, std::string_view also = "");

// Whether a host as it is written in a URL means this machine: localhost, 127.0.0.0/8, ::1, 0.0.0.0
// and the IPv6 spellings of these.
[[nodiscard]] bool is_loopback(std::string_view host);
// Whether it is loopback, or link-local: 169.254.0.0/16, fe80::/10. Only the machine itself may
// name such a host; a redirect from another one may not.
[[nodiscard]] bool is_inner_host(std::string_view host);

}  // namespace lowtide

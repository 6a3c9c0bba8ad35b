// address.h - objects on servers are opened like files, by an address instead of a path: http://,
// https://, or s3://bucket/key.
//
// An address may contain secrets: user:password in front of the host, and a signature or a token
// in the query. Lowtide never shows these.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// Whether a text names an object and not a local file: it begins with one of the three schemes.
[[nodiscard]] bool is_address(std::string_view text);

// The address without user:password, query and fragment. Any text may be given; one that is no
// address stays as it is.
[[nodiscard]] std::string shown_address(std::string_view text);

// Whether shown_address() leaves something out, so that the shown one would not work.
[[nodiscard]] bool has_secret(std::string_view text);

// Why objects cannot be read here, in one line; empty if they can. Found out by trying.
[[nodiscard]] std::string why_no_http();

}  // namespace lowtide

// address.h - objects on servers are opened like files, by an address instead of a path: http://,
// https://, or s3://bucket/key.
//
// An address may contain secrets: user:password in front of the host, and a signature or a token
// in the query. Lowtide never shows these.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lowtide {

// Whether a text names an object rather than a local file: whether it begins with one of the three
// schemes.
[[nodiscard]] bool is_address(std::string_view text);

// The address without user:password, query and fragment. Any other text is returned unchanged.
[[nodiscard]] std::string shown_address(std::string_view text);

// Whether shown_address() leaves something out, so that its result cannot be opened.
[[nodiscard]] bool has_secret(std::string_view text);

// What requests for an object are sent with. All of it may be secret; none of it is ever shown.
struct SignedRequest {
  std::string url = {};  // http:// or https://
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::int64_t expires_unix = 0;  // seconds since 1970; 0: never
};
// Called with the address of an object: first on the thread that opens it, then on a separate
// thread, a minute before the result expires and once after a server has answered 401 or 403. It
// may take long, and it may throw.
using SignRequest = std::function<SignedRequest(const std::string& address)>;

// Lists objects, for addresses with a pattern and for folders. Called with a prefix such as
// "s3://bucket/train/"; returns the addresses that begin with it, in any order. Unless `deep` is
// set, addresses with a further '/' after the prefix may be left out. It may take long, and it may
// throw.
using ListObjects =
    std::function<std::vector<std::string>(const std::string& beginning, bool deep)>;

// Why objects cannot be read here, in one line; empty if they can. Determined by trying.
[[nodiscard]] std::string why_no_http();

}  // namespace lowtide

// http_fuzz.cc - any bytes as an address, as the head of an answer, as a place to be redirected to,
// and as a list of objects: the result is an error without a secret, or text that is safe to send
// and to show. Seeds: tests/golden/http.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "http/address.h"
#include "http/answer.h"
#include "http/listing.h"
#include "http/redirect.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

// assert() is compiled out of release builds, but a broken promise must stop the fuzzer.
void require(bool promise) {
  if (!promise) std::abort();
}

// What may be part of a request line.
bool is_sendable(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7F; });
}

void check(const Address& address) {
  require(is_sendable(address.path) && is_sendable(address.query) && is_sendable(address.host));
  require(address.path.starts_with('/'));
  require(address.query.empty() || address.query.starts_with('?'));
  const Address again = parse_http(address.url());
  require(again.url() == address.url() && again.origin() == address.origin());
}

void fuzz_address(std::string_view text) {
  const std::string shown = shown_address(text);
  require(is_address(shown) == is_address(text));
  if (is_address(shown)) require(shown_address(shown) == shown && !has_secret(shown));
  try {
    const Address address = parse_http(text);
    check(address);
    const Address seen = parse_http(shown);
    require(seen.user_info.empty() && seen.query.empty());
    require(seen.origin() == address.origin() && seen.path == address.path);
  } catch (const std::invalid_argument&) {
  }
  try {
    const S3Name name = parse_s3(text);
    check(s3_address(name, {.endpoint = "http://127.0.0.1:1", .region = "r"}));
    check(s3_address(name, {.endpoint = std::nullopt, .region = "eu-west-1"}));
  } catch (const std::invalid_argument&) {
  }
}

void fuzz_answer(std::string_view text) {
  Answer answer;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    answer.take_line(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  if (answer.range && answer.range->has_bytes() && answer.range->total) {
    require(answer.range->last < *answer.range->total);
  }
  const Address from = parse_http("https://h.example/a/b");
  if (const auto to = redirected(from, answer.location)) {
    check(*to);
    require(to->scheme == "https" && !is_inner_host(to->host) && to->user_info.empty());
  }
}

void fuzz_listing(std::string_view text) {
  try {
    const ListingPage page = parse_listing(text, "s3://b/");
    for (const std::string& key : page.keys) require(!key.empty());
    require(is_sendable(listing_query(page.next, true, page.next)));
  } catch (const FormatError&) {
  }
  if (!is_listed(text)) return;
  const ListedAddress listed = listed_address(text);
  require(text.starts_with(listed.beginning));
  // A pattern may end with a slash, too, and an address by http with a query.
  require(!listed.folder || !text.starts_with("s3://") || text.ends_with('/'));
}

}  // namespace
}  // namespace lowtide

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  lowtide::fuzz_address(text);
  lowtide::fuzz_answer(text);
  lowtide::fuzz_listing(text);
  return 0;
}

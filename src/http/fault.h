// fault.h - what can go wrong between us and a server, as data, and its words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lowtide {

enum class HttpFault : std::uint8_t {
  none,
  status,       // an answer that says no; its number is in HttpResult::status
  changed,      // the object is not the one that was opened
  ended,        // the object is shorter than it was when it was opened
  no_range,     // 200 and the whole object where 206 and a range is due
  wrong_range,  // a range that was not asked for
  encoded,      // a compressed body
  no_host,      // no such host
  refused,      // nobody listens there
  cut,          // the connection broke
  stalled,      // no byte came for too long
  tls,          // the server could not prove who it is
  authorities,  // no file with the certificates of authorities can be read
  handshake,    // no TLS connection could be made
  redirect,     // redirected too often, to nowhere, or where no redirect may lead
  proxy,        // a proxy asks for a password, or cannot be reached
  clock_skew,   // the signature was refused because a clock is wrong
  expired,      // the signature or the token has expired
  signer,       // what signs requests failed
  cancelled,
  no_memory,
  no_thread,   // none could be started
  no_library,  // libcurl could not be loaded
};

struct HttpResult {
  HttpFault fault = HttpFault::none;
  int status = 0;                 // of the last answer; 0: there was none
  std::uint32_t tries = 0;        // requests that were sent
  std::uint64_t found_bytes = 0;  // with `ended`: the size of the object

  [[nodiscard]] bool ok() const { return fault == HttpFault::none; }
};

// The errno with which Python chooses the class of its error: ENOENT for 404, EACCES for 401 and
// 403, ESTALE for a changed object.
[[nodiscard]] int errno_of(const HttpResult& result);

// "the server answered 503 (5 tries)", "the server ignores ranges: it answered 200 with the whole
// object". No address is part of it.
[[nodiscard]] std::string describe(const HttpResult& result);

// The reason in the body of a refusal: S3 puts it there as <Code>...</Code>.
[[nodiscard]] HttpFault fault_of_refusal(int status, std::string_view body);

}  // namespace lowtide

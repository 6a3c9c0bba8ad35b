#include "http/fault.h"

#include <cerrno>

namespace lowtide {
namespace {

std::string status_text(int status) {
  switch (status) {
    case 400:
      return "400 (bad request)";
    case 401:
      return "401 (unauthorized): it requires a token or a password";
    case 403:
      return "403 (forbidden): the credentials do not allow reading it, or there are none";
    case 404:
      return "404 (not found)";
    case 416:
      return "416 (range not satisfiable)";
    case 429:
      return "429 (too many requests)";
    case 503:
      return "503 (unavailable, slow down)";
    default:
      return std::to_string(status);
  }
}

std::string words(const HttpResult& result) {
  switch (result.fault) {
    case HttpFault::none:
      return "";
    case HttpFault::status:
      return "the server answered " + status_text(result.status);
    case HttpFault::changed:
      return "the object was replaced or rewritten since it was first opened";
    case HttpFault::ended:
      return "the object now ends at byte " + std::to_string(result.found_bytes);
    case HttpFault::no_range:
      return "the server ignores ranges: it answered " + std::to_string(result.status) +
             " instead of 206 and a part of the object";
    case HttpFault::wrong_range:
      return "the server returned a different range from the one requested";
    case HttpFault::encoded:
      return "the server compresses the object in transit, so ranges of it cannot be read";
    case HttpFault::no_host:
      return "no such host";
    case HttpFault::refused:
      return "no server is listening there";
    case HttpFault::cut:
      return "the connection was lost";
    case HttpFault::stalled:
      return "the server stopped sending data";
    case HttpFault::tls:
      return "the server's certificate is not trusted here; to trust another authority, set "
             "SSL_CERT_FILE";
    case HttpFault::authorities:
      return "the CA certificates cannot be read; install them (Debian: apt-get install "
             "ca-certificates), or set SSL_CERT_FILE to their path";
    case HttpFault::handshake:
      return "no TLS connection could be made; perhaps the server speaks plain http";
    case HttpFault::redirect:
      return "the server redirects to an address that is not allowed";
    case HttpFault::proxy:
      return "the proxy cannot be reached or requires a password";
    case HttpFault::clock_skew:
      return "the server rejected the time of the signature: the clock of this machine or of the "
             "server is wrong";
    case HttpFault::expired:
      return "the signature or the token has expired";
    case HttpFault::signer:
      return "the request could not be signed";
    case HttpFault::no_thread:
      return "no thread could be started";
    case HttpFault::cancelled:
      return "cancelled";
    case HttpFault::no_memory:
      return "out of memory";
    case HttpFault::no_library:
      return "libcurl could not be loaded";
  }
  return "";
}

}  // namespace

int errno_of(const HttpResult& result) {
  switch (result.fault) {
    case HttpFault::none:
      return 0;
    case HttpFault::status:
      if (result.status == 404 || result.status == 410) return ENOENT;
      if (result.status == 401 || result.status == 403) return EACCES;
      return result.status == 429 || result.status == 503 ? EBUSY : EIO;
    case HttpFault::changed:
      return ESTALE;
    case HttpFault::clock_skew:
    case HttpFault::expired:
    case HttpFault::signer:
      return EACCES;
    case HttpFault::no_host:
      return EHOSTUNREACH;
    case HttpFault::refused:
    case HttpFault::proxy:
      return ECONNREFUSED;
    case HttpFault::cut:
    case HttpFault::handshake:
      return ECONNRESET;
    case HttpFault::stalled:
      return ETIMEDOUT;
    case HttpFault::cancelled:
      return ECANCELED;
    case HttpFault::no_memory:
      return ENOMEM;
    case HttpFault::no_thread:
      return EAGAIN;
    case HttpFault::no_library:
      return ENOSYS;
    case HttpFault::ended:
    case HttpFault::no_range:
    case HttpFault::wrong_range:
    case HttpFault::encoded:
    case HttpFault::tls:
    case HttpFault::authorities:
    case HttpFault::redirect:
      return EPROTO;
  }
  return EIO;
}

std::string describe(const HttpResult& result) {
  std::string text = words(result);
  const bool last = result.fault != HttpFault::status && result.fault != HttpFault::no_range &&
                    result.status != 0 && result.status != 206;
  if (last) text += " (status " + std::to_string(result.status) + ")";
  if (result.tries > 1) text += " (" + std::to_string(result.tries) + " tries)";
  return text;
}

HttpFault fault_of_refusal(int status, std::string_view body) {
  const auto has = [&](std::string_view word) { return body.find(word) != body.npos; };
  if (status == 407) return HttpFault::proxy;
  if (status == 412) return HttpFault::changed;
  if (status != 400 && status != 401 && status != 403) return HttpFault::status;
  if (has("RequestTimeTooSkewed")) return HttpFault::clock_skew;
  if (has("ExpiredToken") || has("Request has expired") || has("TokenRefreshRequired")) {
    return HttpFault::expired;
  }
  return HttpFault::status;
}

}  // namespace lowtide

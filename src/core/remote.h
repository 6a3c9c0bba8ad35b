// remote.h - how the bytes of a shard that is no local file are requested.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lowtide {

// What a request is sent with. All of it is secret: it may contain passwords, tokens and
// signatures.
struct SignedUrl {
  std::string url = {};
  std::vector<std::string> headers = {};  // "Authorization: Bearer ..."
  // Set for requests that the transport signs itself, with AWS's Signature Version 4.
  std::string region = {};
  std::string access_key = {};
  std::string secret_key = {};
};

// Makes a URL valid for a while. Any thread.
class Signer {
 public:
  virtual ~Signer() = default;
  // Must not block. Nullopt: not yet, ask again in a moment. Throws what it likes; the request then
  // fails. `again`: the last answer was 401 or 403, so what is remembered is no longer valid.
  [[nodiscard]] virtual std::optional<SignedUrl> sign(const std::string& url, bool again) const = 0;
};

// An object on a server, as it was when it was first opened. Immutable; any thread.
struct Remote {
  std::string url;  // as requested, with its secrets
  std::string
      etag;  // with its quotes; sent as If-Match. Empty: the server gave none, or a weak one
  std::string modified;                  // sent as If-Unmodified-Since if there is no etag
  std::shared_ptr<const Signer> signer;  // nullptr: the url is requested as it is

  [[nodiscard]] std::uint64_t held_bytes() const {
    return sizeof(Remote) + url.capacity() + etag.capacity() + modified.capacity();
  }
};

}  // namespace lowtide

// transport.h - ranges of objects over HTTP: one thread, many requests in flight, connections that
// are kept.
//
// One request is one range. Its bytes are handed over as they arrive, in order and each once or, if
// a second try overlaps the first, twice with the same value. Only 206 with exactly the range that
// was asked for is accepted. Broken connections, stalls and refusals that may pass are tried again
// from the byte that was reached. Errors are data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/remote.h"
#include "http/answer.h"
#include "http/fault.h"
#include "http/policy.h"

namespace lowtide {

// One range on its way. The caller owns it and must not touch it until done() is called.
class HttpRequest {
 public:
  virtual ~HttpRequest() = default;

  // Bytes of the object that begin at `offset_bytes`, on the transport's thread. `cursor` belongs
  // to the receiver: 0 at the first call, kept while bytes follow one another, 0 again with another
  // connection.
  virtual void take(std::uint64_t offset_bytes, std::span<const std::byte> bytes,
                    std::uint32_t* cursor) noexcept = 0;
  // Called exactly once, on the transport's thread, or inside submit() if it could not start. Must
  // not block; may submit further requests.
  virtual void done(const HttpResult& result) noexcept = 0;
  // A true answer ends the request within 100 ms. Any thread.
  [[nodiscard]] virtual bool cancelled() const noexcept { return false; }
  // For a request that opens: what the answer says about the object. Before take().
  virtual void opened(const Answer&, std::uint64_t /*size_bytes*/) noexcept {}

  std::shared_ptr<const Remote> object;
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;  // greater than 0
  // Of the whole object. Unknown (0) only for a request that opens: it begins at 0, and an object
  // that is shorter than what was asked for is fine.
  std::uint64_t object_bytes = 0;
  bool opens = false;
};

struct TransportOptions {
  unsigned most_in_flight = 128;
  bool hedge = true;
  RetryRules retry;
};

// Since it was made; relaxed atomics.
struct TransportCounts {
  std::uint64_t requests = 0;  // sent, with those below
  std::uint64_t retries = 0;   // after a failure
  std::uint64_t hedges = 0;    // beside one that was slow
  std::uint64_t bytes = 0;     // of bodies
  std::uint64_t limit = 0;     // how many may be in flight now
};

// Any thread. Holds, per request in flight, what libcurl holds for a connection: about 40 KiB, with
// TLS about 80 KiB.
class Transport {
 public:
  static constexpr std::uint64_t kBytesInFlight = 48 * 1024;

  // Throws IoError(ENOSYS) with the reason where there is no libcurl.
  explicit Transport(const TransportOptions& options = {});
  ~Transport();  // every request must be done
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  void submit(HttpRequest& request) noexcept;
  [[nodiscard]] TransportCounts counts() const noexcept;

  // Why objects cannot be read here, in one line; empty if they can. Loads libcurl.
  [[nodiscard]] static std::string probe();
  // Whether this build knows HTTP at all.
  [[nodiscard]] static bool built_in() noexcept;

 private:
  class Reactor;
  std::unique_ptr<Reactor> reactor_;
};

}  // namespace lowtide

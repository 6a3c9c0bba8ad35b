// policy.h - when to send a request again, when to send it twice, and how many at a time. Pure
// arithmetic over times that the caller gives; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "http/fault.h"

namespace lowtide {

inline constexpr std::uint64_t kMs = 1'000'000;  // nanoseconds

// Whether the same request may succeed a little later.
[[nodiscard]] bool is_transient(const HttpResult& result);

struct RetryRules {
  std::uint64_t patience_ns = 30'000 * kMs;  // without progress, then the failure is final
  std::uint64_t first_pause_ns = 100 * kMs;
  std::uint64_t longest_pause_ns = 8'000 * kMs;
  // A try ends after this long without a byte, times its number.
  std::uint64_t stall_ns = 5'000 * kMs;
  // Of a server that never answered: a wrong name should not take half a minute to be noticed.
  std::uint32_t tries_of_unknown_host = 4;
};

// The pause before try number `tries` + 1: doubled with each, of which a random part of up to a
// half is left out, so that requests that failed together do not return together. At least what the
// server asked for with Retry-After, up to the longest pause.
[[nodiscard]] std::uint64_t pause_ns(const RetryRules& rules, std::uint32_t tries,
                                     std::uint64_t random, std::uint64_t retry_after_s);

// Knows how long servers take to send the first byte, and decides which requests are sent a second
// time: those without a byte for longer than 95 % of requests need, and than twice the median. At
// most 5 % of all requests are sent twice.
class Hedging {
 public:
  static constexpr std::uint64_t kLeastNs = 10 * kMs;
  static constexpr std::size_t kLeastSeen = 32;
  static constexpr std::uint64_t kShare = 20;  // one of so many

  void sent() { ++sent_; }
  void first_byte_after(std::uint64_t ns);
  void hedged() { ++hedged_; }

  // 0: too little is known.
  [[nodiscard]] std::uint64_t threshold_ns() const { return threshold_ns_; }
  [[nodiscard]] bool allowed() const {
    return threshold_ns_ != 0 && (hedged_ + 1) * kShare <= sent_;
  }

 private:
  std::array<std::uint64_t, 128> recent_{};
  std::size_t seen_ = 0;
  std::uint64_t threshold_ns_ = 0;
  std::uint64_t sent_ = 0, hedged_ = 0;
};

// How many requests may be in flight: starts low, grows while that makes the whole faster, shrinks
// when the server asks for less.
class FlowCap {
 public:
  explicit FlowCap(unsigned most);

  [[nodiscard]] unsigned limit() const { return static_cast<unsigned>(limit_); }
  // A request ended well; `full` if as many as allowed were in flight.
  void ended(std::uint64_t now_ns, std::uint64_t bytes, bool full);
  // The server answered 429 or 503.
  void overloaded(std::uint64_t now_ns);

 private:
  static constexpr double kStart = 16;
  static constexpr double kGrowth = 1.5;
  const double most_;
  double limit_;
  double best_rate_ = 0;  // bytes per nanosecond at the limit before
  std::uint64_t window_began_ns_ = 0, window_bytes_ = 0, window_ended_ = 0, window_full_ = 0;
  std::uint64_t overloaded_ns_ = 0;
};

}  // namespace lowtide

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
// time: those without a byte for longer than 95 % of requests need, plus the median, which is what
// the second one will take. Sooner it would rarely win, and a busy server would get busier. At most
// 5 % of all requests are sent twice.
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

// How many requests may be in flight. It climbs: it knows the rate at the current limit, tries a
// higher one and now and then a lower one, and keeps what is better. Of two that are about equal it
// keeps the lower one: requests that only wait in line at the server slow down each other. It
// shrinks when the server refuses more than a few.
class FlowCap {
 public:
  explicit FlowCap(unsigned most);

  [[nodiscard]] unsigned limit() const { return static_cast<unsigned>(limit_); }
  // A request ended well; `full` if as many as allowed were in flight.
  void ended(std::uint64_t now_ns, std::uint64_t bytes, bool full);
  // The server answered 429 or 503.
  void overloaded(std::uint64_t now_ns);

 private:
  enum class Trial { none, more, fewer };

  void judge(double rate);
  void settle(double limit, double rate);
  void start_trial();

  const double most_, least_;
  double limit_;
  Trial trial_ = Trial::none;
  double known_limit_;     // the one before the trial
  double known_rate_ = 0;  // work per nanosecond there; 0: unknown
  bool climbing_ = true;   // no trial of more has failed yet
  bool fewer_next_ = false;
  unsigned hold_ = 0, misses_ = 0;  // windows until the next trial; trials that brought nothing
  std::uint64_t window_began_ns_ = 0, window_work_ = 0, window_ended_ = 0, window_full_ = 0;
  double refusals_ = 0;  // recent ones; each fades as requests end well
  std::uint64_t shrunk_ns_ = 0;
};

}  // namespace lowtide

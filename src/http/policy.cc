#include "http/policy.h"

#include <algorithm>

namespace lowtide {
namespace {

constexpr std::size_t kHedgingEvery = 16;              // first bytes between two estimates
constexpr std::uint64_t kOverloadPauseNs = 200 * kMs;  // refusals within it count once
constexpr double kBackOff = 0.6;
constexpr double kBetter = 1.05, kWorse = 0.8;

}  // namespace

bool is_transient(const HttpResult& result) {
  switch (result.fault) {
    case HttpFault::cut:
    case HttpFault::stalled:
    case HttpFault::refused:
    case HttpFault::no_host:
    case HttpFault::handshake:
      return true;
    case HttpFault::status:
      return result.status == 408 || result.status == 429 || result.status == 500 ||
             result.status == 502 || result.status == 503 || result.status == 504;
    default:
      return false;
  }
}

std::uint64_t pause_ns(const RetryRules& rules, std::uint32_t tries, std::uint64_t random,
                       std::uint64_t retry_after_s) {
  const std::uint32_t doublings = std::min(tries > 0 ? tries - 1 : 0, 20U);
  const std::uint64_t whole = std::min(rules.first_pause_ns << doublings, rules.longest_pause_ns);
  const std::uint64_t pause = whole - random % (whole / 2 + 1);
  const std::uint64_t asked = std::min(retry_after_s, std::uint64_t{3600}) * 1000 * kMs;
  return std::clamp(asked, pause, rules.longest_pause_ns);
}

void Hedging::first_byte_after(std::uint64_t ns) {
  recent_[seen_++ % recent_.size()] = ns;
  if (seen_ < kLeastSeen || seen_ % kHedgingEvery != 0) return;
  const std::size_t count = std::min(seen_, recent_.size());
  std::array<std::uint64_t, 128> sorted = recent_;
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(count));
  threshold_ns_ = std::max({sorted[count * 95 / 100], 2 * sorted[count / 2], kLeastNs});
}

FlowCap::FlowCap(unsigned most)
    : most_(std::max(1U, most)), limit_(std::min<double>(kStart, most_)) {}

void FlowCap::ended(std::uint64_t now_ns, std::uint64_t bytes, bool full) {
  if (window_ended_ == 0) window_began_ns_ = now_ns;
  window_bytes_ += window_ended_ == 0 ? 0 : bytes;
  ++window_ended_;
  if (full) ++window_full_;
  // Two rounds, so that most of them were started under this limit.
  if (static_cast<double>(window_ended_) < 2 * limit_ + 1 || now_ns <= window_began_ns_) return;
  const double rate =
      static_cast<double>(window_bytes_) / static_cast<double>(now_ns - window_began_ns_);
  if (window_full_ * 2 > window_ended_) {
    if (rate > kBetter * best_rate_) {
      best_rate_ = rate;
      limit_ = std::min(most_, limit_ * kGrowth);
    } else if (rate < kWorse * best_rate_) {
      best_rate_ = rate;  // the line itself became slower, or more in flight made it so
      limit_ = std::max(std::min(kStart, most_), limit_ / kGrowth);
    } else {
      best_rate_ = (best_rate_ + rate) / 2;
    }
  }
  window_ended_ = window_bytes_ = window_full_ = 0;
}

void FlowCap::overloaded(std::uint64_t now_ns) {
  if (overloaded_ns_ != 0 && now_ns - overloaded_ns_ < kOverloadPauseNs) return;
  overloaded_ns_ = now_ns;
  limit_ = std::max(1.0, limit_ * kBackOff);
  best_rate_ = 0;  // may grow again from here
  window_ended_ = window_bytes_ = window_full_ = 0;
}

}  // namespace lowtide

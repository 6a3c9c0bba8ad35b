#include "http/policy.h"

#include <algorithm>

namespace lowtide {
namespace {

constexpr std::size_t kHedgingEvery = 16;              // first bytes between two estimates
constexpr std::uint64_t kOverloadPauseNs = 200 * kMs;  // refusals within it count once
constexpr double kBackOff = 0.6;
// One refusal in a hundred is a server as they are; the limit shrinks at five in about sixty.
constexpr double kMostRefusals = 4.5, kRefusalFades = 1.0 / 64;

constexpr double kStartLimit = 16, kLeastLimit = 4;
constexpr double kFirstSteps = 2, kStep = 1.5;  // by which a trial changes the limit
constexpr double kBetter = 1.05, kSame = 0.97;  // of the rate before
constexpr unsigned kHold = 8, kMostDoublings = 3;
// What a request costs besides its bytes, in bytes: otherwise longer ranges would look like a
// better limit.
constexpr std::uint64_t kRequestWork = 256 * 1024;

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
  threshold_ns_ = std::max(sorted[count * 95 / 100] + sorted[count / 2], kLeastNs);
}

FlowCap::FlowCap(unsigned most)
    : most_(std::max(1U, most)),
      least_(std::min(kLeastLimit, most_)),
      limit_(std::min(kStartLimit, most_)),
      known_limit_(limit_) {}

void FlowCap::ended(std::uint64_t now_ns, std::uint64_t bytes, bool full) {
  refusals_ -= refusals_ * kRefusalFades;
  if (window_ended_ == 0) window_began_ns_ = now_ns;
  window_work_ += window_ended_ == 0 ? 0 : bytes + kRequestWork;
  ++window_ended_;
  if (full) ++window_full_;
  // Two rounds, so that most of them were started under this limit.
  if (static_cast<double>(window_ended_) < 2 * limit_ + 1 || now_ns <= window_began_ns_) return;
  const double rate =
      static_cast<double>(window_work_) / static_cast<double>(now_ns - window_began_ns_);
  if (window_full_ * 2 > window_ended_) judge(rate);
  window_ended_ = window_work_ = window_full_ = 0;
}

void FlowCap::judge(double rate) {
  if (trial_ == Trial::none) {
    known_rate_ = known_rate_ == 0 ? rate : (3 * known_rate_ + rate) / 4;
    if (hold_ > 0) --hold_;
    if (hold_ == 0) start_trial();
    return;
  }
  const bool more = trial_ == Trial::more;
  if (rate >= (more ? kBetter : kSame) * known_rate_) {
    misses_ = 0;
    settle(limit_, rate);
    hold_ = 0;
    fewer_next_ = !more;  // further in the same direction
    start_trial();
  } else {
    climbing_ = false;
    settle(known_limit_, known_rate_);
    hold_ = kHold << std::min(misses_++, kMostDoublings);
    fewer_next_ = more;
  }
}

void FlowCap::settle(double limit, double rate) {
  trial_ = Trial::none;
  limit_ = known_limit_ = limit;
  known_rate_ = rate;
}

void FlowCap::start_trial() {
  const double step = climbing_ ? kFirstSteps : kStep;
  const bool fewer = fewer_next_ || limit_ >= most_;
  const double limit = fewer ? std::max(least_, limit_ / kStep) : std::min(most_, limit_ * step);
  fewer_next_ = false;
  if (limit == limit_ || (fewer && climbing_)) {
    climbing_ = false;
    hold_ = kHold;
    return;
  }
  trial_ = fewer ? Trial::fewer : Trial::more;
  limit_ = limit;
}

void FlowCap::overloaded(std::uint64_t now_ns) {
  refusals_ += 1;
  if (refusals_ < kMostRefusals) return;
  if (shrunk_ns_ != 0 && now_ns - shrunk_ns_ < kOverloadPauseNs) return;
  shrunk_ns_ = now_ns;
  refusals_ = 0;
  settle(std::max(1.0, limit_ * kBackOff), 0);
  climbing_ = false;
  hold_ = kHold;
  window_ended_ = window_work_ = window_full_ = 0;
}

}  // namespace lowtide

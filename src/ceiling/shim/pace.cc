#include "ceiling/shim/pace.h"

namespace lowtide::ceiling {

namespace {

constexpr double kSecondNs = 1e9;
constexpr std::uint64_t kShortestNs = 200'000;
constexpr std::uint64_t kLongestNs = 50'000'000;
// Bytes per second, assumed while something grows at an unknown rate, and for a reader that may
// start at any time.
constexpr std::uint64_t kFastRate = 4'000'000'000;
constexpr std::uint64_t kStillRate = 1'000'000'000;

std::uint64_t time_ns(std::uint64_t bytes, std::uint64_t rate) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * kSecondNs /
                                    static_cast<double>(rate));
}

std::uint64_t larger(std::uint64_t a, std::uint64_t b) {
  return a > b ? a : b;
}
std::uint64_t smaller(std::uint64_t a, std::uint64_t b) {
  return a < b ? a : b;
}
std::uint64_t less(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

}  // namespace

void Pace::seen(std::uint64_t resident_bytes, std::uint64_t now_ns) {
  still_ = resident_bytes <= last_bytes_;
  std::uint64_t rate = 0;
  if (!still_ && now_ns > last_ns_) {
    rate = static_cast<std::uint64_t>(static_cast<double>(resident_bytes - last_bytes_) *
                                      kSecondNs / static_cast<double>(now_ns - last_ns_));
  }
  rate_ = rate > rate_ ? rate : rate_ - (rate_ - rate) / 8;
  last_bytes_ = resident_bytes;
  last_ns_ = now_ns;
}

void Pace::trimmed(std::uint64_t resident_bytes, std::uint64_t now_ns) {
  // Raised at once but lowered slowly: at most one trim in twenty may be late.
  const std::uint64_t late_bytes = less(last_bytes_, mark_bytes());
  const std::uint64_t lead = larger(late_bytes, lead_bytes_ - lead_bytes_ / 16);
  lead_bytes_ = smaller(larger(lead, limit_bytes_ / 8), limit_bytes_ / 2);
  last_bytes_ = resident_bytes;
  last_ns_ = now_ns;
  still_ = false;
}

std::uint64_t Pace::next_ns() {
  // Sleeps half of the remaining time, then half of the rest, so that a reader that doubles its
  // speed is still noticed in time.
  const std::uint64_t half_ns =
      time_ns(less(mark_bytes(), last_bytes_), larger(rate_, kFastRate)) / 2;
  const std::uint64_t sleep_ns = smaller(larger(half_ns, kShortestNs), kLongestNs);
  if (!still_) {
    still_ns_ = 0;
    return sleep_ns;
  }
  // Nothing grows just below the mark: sleep longer, but only so long that a reader that starts now
  // is noticed within 5 % of the limit.
  const std::uint64_t left = less(limit_bytes_ + limit_bytes_ / 20, last_bytes_);
  still_ns_ = larger(sleep_ns, smaller(still_ns_ * 2, time_ns(left, larger(rate_, kStillRate))));
  return smaller(still_ns_, kLongestNs);
}

}  // namespace lowtide::ceiling

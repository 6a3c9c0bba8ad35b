// pace.h - how long a trimmer sleeps between two looks. Arithmetic only: no clock, no system call,
// nothing but this header, because the shim includes it too.
//
// It looks more often the closer the resident bytes are to the level at which something is due, and
// the faster they grow. Doing this at half of the remaining time, again and again, also notices a
// reader that doubles its speed.
#pragma once

#include <cstdint>

namespace lowtide {

class Pace {
 public:
  static constexpr std::uint64_t kShortestNs = 200'000;
  static constexpr std::uint64_t kLongestNs = 50'000'000;  // idle: some twenty looks per second

  // Bytes per second: assumed of anything that grows, until it was measured to be faster, and of a
  // reader that starts while nothing grows.
  struct Speeds {
    std::uint64_t growing, starting;
  };
  explicit constexpr Pace(Speeds speeds) : speeds_(speeds) {}

  // Records that a look at `now_ns` found this much resident.
  void seen(std::uint64_t resident_bytes, std::uint64_t now_ns) {
    still_ = resident_bytes <= last_bytes_;
    const bool grown = !still_ && now_ns > last_ns_;
    const std::uint64_t rate = grown ? rate_of(resident_bytes - last_bytes_, now_ns - last_ns_) : 0;
    rate_ = rate > rate_ ? rate : rate_ - (rate_ - rate) / 8;
    last_bytes_ = resident_bytes;
    last_ns_ = now_ns;
  }
  // Records that pages were released, which left this much; growth counts from here.
  void released(std::uint64_t resident_bytes, std::uint64_t now_ns) {
    last_bytes_ = resident_bytes;
    last_ns_ = now_ns;
    still_ = false;
  }
  [[nodiscard]] std::uint64_t last_bytes() const { return last_bytes_; }

  // How long to sleep until the next look, if something is due at `due_bytes`. While nothing grows,
  // the sleep doubles for as long as a reader that starts now is noticed before `late_bytes`.
  [[nodiscard]] std::uint64_t sleep_ns(std::uint64_t due_bytes, std::uint64_t late_bytes) {
    const std::uint64_t half_ns = time_to(due_bytes, speeds_.growing) / 2;
    const std::uint64_t sleep_ns = smaller(larger(half_ns, kShortestNs), kLongestNs);
    const std::uint64_t longest_ns = smaller(time_to(late_bytes, speeds_.starting), kLongestNs);
    still_ns_ = still_ ? larger(sleep_ns, smaller(still_ns_ * 2, longest_ns)) : 0;
    return still_ ? still_ns_ : sleep_ns;
  }

 private:
  static constexpr double kSecondNs = 1e9;

  static std::uint64_t larger(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }
  static std::uint64_t smaller(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }
  static std::uint64_t rate_of(std::uint64_t bytes, std::uint64_t ns) {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) * kSecondNs /
                                      static_cast<double>(ns));
  }
  [[nodiscard]] std::uint64_t time_to(std::uint64_t bytes, std::uint64_t least_rate) const {
    const std::uint64_t left = bytes > last_bytes_ ? bytes - last_bytes_ : 0;
    return rate_of(left, larger(rate_, least_rate));
  }

  Speeds speeds_;
  std::uint64_t last_bytes_ = 0;
  std::uint64_t last_ns_ = 0;
  std::uint64_t rate_ = 0;      // bytes per second, the recent maximum
  std::uint64_t still_ns_ = 0;  // the last sleep, while nothing grows
  bool still_ = false;
};

}  // namespace lowtide

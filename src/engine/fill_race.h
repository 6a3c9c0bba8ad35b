// fill_race.h - whether a read waits until the memory engine has filled, or is fetched meanwhile.
//
// A disk delivers a whole file in order much faster than its rows one by one, and each of the two
// slows the other down: there, waiting wins unless fetching is far ahead. Rows in the page cache
// come about as fast as the filling: there, waiting loses. So both are timed. Not thread-safe.
#pragma once

#include <cstdint>

namespace lowtide {

class FillRace {
 public:
  // Below these, both times are mostly those of starting up.
  static constexpr std::uint64_t kLeastFilledBytes = 16 * 1024 * 1024;
  static constexpr std::uint64_t kLeastFetchedBytes = 4 * 1024 * 1024;
  // Filling must be this many times as fast as fetching, while both are under way. Without the
  // fetches, a disk would fill faster by all that they take.
  static constexpr double kWorthCached = 2;
  static constexpr double kWorthOnDisk = 0.5;

  void filling_starts(std::uint64_t now_ns) { started_ns_ = now_ns; }
  void filled(std::uint64_t bytes, std::uint64_t now_ns) {
    filled_bytes_ += bytes;
    fill_ns_ = now_ns - started_ns_;
  }

  // For every set that is fetched while the memory fills. Only time with a fetch in flight counts:
  // a slow consumer does not make the source slow.
  void fetch_starts(std::uint64_t now_ns) {
    if (fetching_++ == 0) fetching_since_ns_ = now_ns;
  }
  void fetched(std::uint64_t bytes, std::uint64_t now_ns) {
    fetched_bytes_ += bytes;
    fetch_ns_ += now_ns - fetching_since_ns_;
    fetching_since_ns_ = now_ns;
    --fetching_;
  }

  // `cached`: the page cache serves the fetches.
  [[nodiscard]] bool worth_waiting(bool cached) const {
    return filled_bytes_ >= kLeastFilledBytes && fetched_bytes_ >= kLeastFetchedBytes &&
           rate(filled_bytes_, fill_ns_) >=
               (cached ? kWorthCached : kWorthOnDisk) * rate(fetched_bytes_, fetch_ns_);
  }

 private:
  [[nodiscard]] static double rate(std::uint64_t bytes, std::uint64_t ns) {
    return static_cast<double>(bytes) / static_cast<double>(ns + 1);
  }

  std::uint64_t started_ns_ = 0;
  std::uint64_t filled_bytes_ = 0, fill_ns_ = 0;
  std::uint64_t fetching_ = 0;  // sets in flight
  std::uint64_t fetching_since_ns_ = 0;
  std::uint64_t fetched_bytes_ = 0, fetch_ns_ = 0;
};

}  // namespace lowtide

// gap.h - how far apart two reads may be so that one request is cheaper than two.
//
// A disk is modelled by its cost in nanoseconds per request and per byte. The gap at which both
// ways cost the same is the quotient. Both costs are fitted to the measured time of recent
// requests; older ones fade out. Not thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace lowtide {

// The gap before anything was measured, and its bounds.
struct GapBounds {
  std::uint32_t start_bytes = 16 * 1024;
  std::uint32_t least_bytes = 4 * 1024;
  std::uint32_t most_bytes = 128 * 1024;
  std::uint64_t least_requests = 256;  // sets with fewer are mostly latency: they do not count
};
inline constexpr GapBounds kDiskGap{};
// A request to a server takes milliseconds, in which many bytes arrive. The start is 100 ms at
// 400 MB/s, shared by 128 requests in flight.
inline constexpr GapBounds kRemoteGap{.start_bytes = 256 * 1024,
                                      .least_bytes = 4 * 1024,
                                      .most_bytes = 4 * 1024 * 1024,
                                      .least_requests = 16};

class GapModel {
 public:
  static constexpr std::uint32_t kStartBytes = kDiskGap.start_bytes;
  static constexpr std::uint32_t kLeastBytes = kDiskGap.least_bytes;
  static constexpr std::uint32_t kMostBytes = kDiskGap.most_bytes;

  explicit GapModel(const GapBounds& bounds = kDiskGap)
      : bounds_(bounds), best_bytes_(bounds.start_bytes) {}

  // The gap for the next set: alternately a little less and a little more than the best one known,
  // because two costs cannot be fitted to requests that are all alike.
  [[nodiscard]] std::uint32_t next();
  [[nodiscard]] std::uint32_t best() const { return best_bytes_; }

  // Reports that a set of `requests` that fetched `bytes` kept the disk busy for `busy_ns`.
  void observe(std::uint64_t requests, std::uint64_t bytes, std::uint64_t busy_ns);

 private:
  const GapBounds bounds_;
  // Sums of the normal equations of busy_ns = request_ns * requests + byte_ns * bytes.
  double requests_requests_ = 0, requests_bytes_ = 0, bytes_bytes_ = 0;
  double requests_busy_ = 0, bytes_busy_ = 0;
  std::uint32_t observations_ = 0;
  std::uint32_t turn_ = 0;
  std::uint32_t best_bytes_;
};

// For sorted reads from the page cache: at which average distance it is cheaper to read everything
// from the first to the last of them than to read each by itself. Long stretches cost far less per
// byte than short ones, so it is all or nothing. Both costs are averages of recent times. Not
// thread-safe, except for distance_bytes().
class WholeModel {
 public:
  // What reads of less than a page cost, and long ones with the copy that follows: measured on one
  // machine, until this one is known.
  static constexpr double kStartReadNs = 600;
  static constexpr double kStartByteNs = 0.09;

  [[nodiscard]] std::uint32_t distance_bytes() const noexcept {
    return distance_bytes_.load(std::memory_order_relaxed);
  }
  // Whether to read a set of this average distance as a whole. Now and then the answer is the other
  // one, if both cost about the same: otherwise one cost would never be known again.
  [[nodiscard]] bool worth(std::uint64_t distance_bytes);

  void read_singly(std::uint64_t reads, std::uint64_t ns);
  void read_whole(std::uint64_t bytes, std::uint64_t ns);

 private:
  void fit();

  double read_ns_ = kStartReadNs, byte_ns_ = kStartByteNs;
  bool knows_bytes_ = false;  // byte_ns_ was measured
  std::uint32_t turn_ = 0;
  std::atomic<std::uint32_t> distance_bytes_ =
      static_cast<std::uint32_t>(kStartReadNs / kStartByteNs);
};

// The cost of a set of requests.
struct Tally {
  std::uint64_t requests = 0, bytes = 0, started_ns = 0;
};

// The GapModel of a lane, whose sets follow one another on the disk. One thread at a time, except
// for best().
class LaneGap {
 public:
  // A lane that does not `merge` has a gap of 0; `most_bytes` is the caller's bound.
  LaneGap(bool merge, std::uint32_t most_bytes, const GapBounds& bounds = kDiskGap)
      : merge_(merge),
        most_bytes_(merge ? most_bytes : 0),
        model_(bounds),
        best_(std::min(bounds.start_bytes, most_bytes_)) {}

  [[nodiscard]] std::uint32_t next() { return std::min(model_.next(), most_bytes_); }
  [[nodiscard]] std::uint32_t best() const noexcept {
    return best_.load(std::memory_order_relaxed);
  }
  // Reports that a set has just ended; `counts` if it was planned with the gap and succeeded.
  void ended(const Tally& tally, bool counts);

 private:
  const bool merge_;
  const std::uint32_t most_bytes_;
  GapModel model_;
  std::atomic<std::uint32_t> best_;
  std::uint64_t ended_ns_ = 0;  // when the last set ended
};

}  // namespace lowtide

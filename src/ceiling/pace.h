// pace.h - when the trimmer looks next, and when a look is a reason to count. Arithmetic only.
//
// A look reads the file pages of the whole process, which is cheap. Counting the pages of each map
// is not. It happens when the process has grown by as much as the fullest map has room for, or
// after a tenth of a second with any change, because other maps that shrink can hide growth.
#pragma once

#include <cstdint>

namespace lowtide {

class Pace {
 public:
  static constexpr std::uint64_t kShortestNs = 200'000;
  static constexpr std::uint64_t kUsualNs = 1'000'000;
  static constexpr std::uint64_t kLongestNs = 50'000'000;
  static constexpr std::uint64_t kStaleNs = 100'000'000;
  static constexpr std::uint64_t kBytesPerMs = 16'000'000;  // no sequential reader is faster

  // Call after all maps were counted, with the process's file pages and the smallest headroom and
  // limit of all maps.
  void counted(std::uint64_t file_bytes, std::uint64_t headroom_bytes, std::uint64_t limit_bytes,
               std::uint64_t now_ns) noexcept;

  // Records a look. True: count now.
  [[nodiscard]] bool look(std::uint64_t file_bytes, std::uint64_t now_ns) noexcept;

  // How long to wait until the next look: less if a limit is near or growth is fast, more if
  // nothing changes.
  [[nodiscard]] std::uint64_t wait_ns() const noexcept;

 private:
  [[nodiscard]] std::uint64_t left_bytes() const noexcept;

  std::uint64_t base_bytes_ = 0;  // the lowest value since the count
  std::uint64_t last_bytes_ = 0;
  std::uint64_t headroom_bytes_ = 0;
  std::uint64_t limit_bytes_ = 0;
  std::uint64_t counted_ns_ = 0;
  std::uint64_t looked_ns_ = 0;
  double bytes_per_ns_ = 0.0;  // growth between the last two looks
  bool moved_ = false;         // since the count
  std::uint32_t still_looks_ = 0;
};

}  // namespace lowtide

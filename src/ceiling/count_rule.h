// count_rule.h - when a look at the whole process is a reason to count each map. Arithmetic only.
//
// A look reads the file pages of the process, which is cheap. Counting the pages of each map is
// not. It happens when the process has grown by as much as the fullest map has room for, or after a
// tenth of a second with any change, because other maps that shrink can hide growth.
#pragma once

#include <cstdint>

#include "ceiling/pace.h"

namespace lowtide {

class CountRule {
 public:
  static constexpr std::uint64_t kStaleNs = 100'000'000;

  // Call after all maps were counted, with the process's file pages before and after that, and the
  // smallest headroom and limit of all maps. Pages that came during the count may have been missed,
  // so it is repeated a tenth of a second after one that ended with another number.
  void counted(std::uint64_t before_bytes, std::uint64_t file_bytes, std::uint64_t headroom_bytes,
               std::uint64_t limit_bytes, std::uint64_t now_ns) noexcept;

  // Records a look. True: count now.
  [[nodiscard]] bool look(std::uint64_t file_bytes, std::uint64_t now_ns) noexcept;

  // How long to wait until the next look.
  [[nodiscard]] std::uint64_t wait_ns() noexcept;

 private:
  // No sequential reader is faster than 16 GB/s: half of the time to a level at 8 GB/s is the time
  // that it needs.
  Pace pace_{{.growing = 8'000'000'000, .starting = 16'000'000'000}};
  std::uint64_t base_bytes_ = 0;  // the lowest value since the count
  std::uint64_t headroom_bytes_ = 0;
  std::uint64_t limit_bytes_ = 0;
  std::uint64_t counted_ns_ = 0;
  bool moved_ = false;  // since the count
};

}  // namespace lowtide

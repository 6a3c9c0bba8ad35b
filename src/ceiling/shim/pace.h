// pace.h - decides when the trimmer looks next. Arithmetic only: no clock, no system call.
//
// The trimmer looks more often the closer the resident bytes are to the mark and the faster they
// grow. A reader at 1 GB/s is noticed before it is 5 % above the limit, and an idle program costs
// some twenty looks per second.
#pragma once

#include <cstdint>

namespace lowtide::ceiling {

class Pace {
 public:
  explicit Pace(std::uint64_t limit_bytes)
      : limit_bytes_(limit_bytes), lead_bytes_(limit_bytes / 8) {}

  // A trim is due from here on. The mark is below the limit by what was recently mapped between a
  // trim becoming due and being done: at least an eighth of the limit, at most half of it.
  [[nodiscard]] std::uint64_t mark_bytes() const { return limit_bytes_ - lead_bytes_; }

  // Records that a look at `now_ns` found this much resident.
  void seen(std::uint64_t resident_bytes, std::uint64_t now_ns);
  // Records that a due trim left this much; growth counts from here.
  void trimmed(std::uint64_t resident_bytes, std::uint64_t now_ns);
  // How long to sleep until the next look.
  [[nodiscard]] std::uint64_t next_ns();

 private:
  std::uint64_t limit_bytes_;
  std::uint64_t lead_bytes_;
  std::uint64_t last_bytes_ = 0;
  std::uint64_t last_ns_ = 0;
  std::uint64_t rate_ = 0;      // bytes per second, the recent maximum
  std::uint64_t still_ns_ = 0;  // the last sleep, while nothing grows
  bool still_ = false;
};

}  // namespace lowtide::ceiling

// pace.h - when the trimmer looks next. Arithmetic only: no clock, no system call.
//
// The trimmer looks more often the closer the resident bytes are to the mark and the faster they
// grew, so that a reader of 1 GB/s is met before it is 5 % above the limit, and a program that
// stands still costs some twenty looks a second.
#pragma once

#include <cstdint>

namespace lowtide::ceiling {

class Pace {
 public:
  explicit Pace(std::uint64_t limit_bytes)
      : limit_bytes_(limit_bytes), lead_bytes_(limit_bytes / 8) {}

  // From here on a trim is due. Below the limit by what was mapped of late between a trim being due
  // and its being done: an eighth of the limit at least, a half at most.
  [[nodiscard]] std::uint64_t mark_bytes() const { return limit_bytes_ - lead_bytes_; }

  // A look at `now_ns` found this much resident.
  void seen(std::uint64_t resident_bytes, std::uint64_t now_ns);
  // A trim that was due left this much; growth is counted from here.
  void trimmed(std::uint64_t resident_bytes, std::uint64_t now_ns);
  // How long to sleep after what was told last.
  [[nodiscard]] std::uint64_t next_ns();

 private:
  std::uint64_t limit_bytes_;
  std::uint64_t lead_bytes_;
  std::uint64_t last_bytes_ = 0;
  std::uint64_t last_ns_ = 0;
  std::uint64_t rate_ = 0;      // bytes a second, the highest of late
  std::uint64_t still_ns_ = 0;  // the last sleep, while nothing grows
  bool still_ = false;
};

}  // namespace lowtide::ceiling

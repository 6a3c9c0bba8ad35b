// mark.h - the level at which the shim's trimmer releases pages. Arithmetic only.
#pragma once

#include <cstdint>

namespace lowtide::ceiling {

class Mark {
 public:
  explicit Mark(std::uint64_t limit_bytes)
      : limit_bytes_(limit_bytes), lead_bytes_(limit_bytes / 8) {}

  // A trim is due from here on. The mark is below the limit by what was recently mapped between a
  // trim becoming due and being done: at least an eighth of the limit, at most half of it.
  [[nodiscard]] std::uint64_t bytes() const { return limit_bytes_ - lead_bytes_; }
  // A trim should not come later than this: 5 % above the limit.
  [[nodiscard]] std::uint64_t late_bytes() const { return limit_bytes_ + limit_bytes_ / 20; }

  // Records that a due trim found this much. Raised at once but lowered slowly: at most one trim in
  // twenty may be late.
  void trimmed(std::uint64_t found_bytes) {
    std::uint64_t lead = found_bytes > bytes() ? found_bytes - bytes() : 0;
    const std::uint64_t slowly = lead_bytes_ - lead_bytes_ / 16;
    if (lead < slowly) lead = slowly;
    if (lead < limit_bytes_ / 8) lead = limit_bytes_ / 8;
    lead_bytes_ = lead < limit_bytes_ / 2 ? lead : limit_bytes_ / 2;
  }

 private:
  std::uint64_t limit_bytes_;
  std::uint64_t lead_bytes_;
};

}  // namespace lowtide::ceiling

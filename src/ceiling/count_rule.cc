#include "ceiling/count_rule.h"

#include <algorithm>

namespace lowtide {

void CountRule::counted(std::uint64_t before_bytes, std::uint64_t file_bytes,
                        std::uint64_t headroom_bytes, std::uint64_t limit_bytes,
                        std::uint64_t now_ns) noexcept {
  pace_.released(file_bytes, now_ns);
  base_bytes_ = file_bytes;
  headroom_bytes_ = headroom_bytes;
  limit_bytes_ = limit_bytes;
  counted_ns_ = now_ns;
  moved_ = file_bytes != before_bytes;
}

bool CountRule::look(std::uint64_t file_bytes, std::uint64_t now_ns) noexcept {
  moved_ = moved_ || file_bytes != pace_.last_bytes();
  pace_.seen(file_bytes, now_ns);
  // Pages of other files may have been released: growth counts from the lowest level since then.
  base_bytes_ = std::min(base_bytes_, file_bytes);
  return file_bytes - base_bytes_ >= headroom_bytes_ ||
         (moved_ && now_ns - counted_ns_ >= kStaleNs);
}

std::uint64_t CountRule::wait_ns() noexcept {
  return pace_.sleep_ns(base_bytes_ + headroom_bytes_, pace_.last_bytes() + limit_bytes_);
}

}  // namespace lowtide

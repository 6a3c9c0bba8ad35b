#include "ceiling/pace.h"

#include <algorithm>

namespace lowtide {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
constexpr std::uint32_t kMostDoublings = 6;

}  // namespace

void Pace::counted(std::uint64_t file_bytes, std::uint64_t headroom_bytes,
                   std::uint64_t limit_bytes, std::uint64_t now_ns) noexcept {
  base_bytes_ = last_bytes_ = file_bytes;
  headroom_bytes_ = headroom_bytes;
  limit_bytes_ = limit_bytes;
  counted_ns_ = looked_ns_ = now_ns;
  moved_ = false;
}

bool Pace::look(std::uint64_t file_bytes, std::uint64_t now_ns) noexcept {
  const std::uint64_t grown = file_bytes > last_bytes_ ? file_bytes - last_bytes_ : 0;
  const std::uint64_t passed_ns = now_ns > looked_ns_ ? now_ns - looked_ns_ : 1;
  bytes_per_ns_ = static_cast<double>(grown) / static_cast<double>(passed_ns);
  still_looks_ = file_bytes == last_bytes_ ? still_looks_ + 1 : 0;
  moved_ = moved_ || file_bytes != last_bytes_;
  last_bytes_ = file_bytes;
  looked_ns_ = now_ns;
  // Pages of other files may have been released: growth counts from the lowest level since then.
  base_bytes_ = std::min(base_bytes_, file_bytes);
  return left_bytes() == 0 || (moved_ && now_ns - counted_ns_ >= kStaleNs);
}

std::uint64_t Pace::wait_ns() const noexcept {
  // How long the fastest reader would need.
  const auto at_most_speed = [](std::uint64_t bytes) {
    return std::clamp(bytes / (kBytesPerMs / 1000) * (kNsPerMs / 1000), kUsualNs, kLongestNs);
  };
  if (still_looks_ > 0) {
    const std::uint64_t slower = kUsualNs << std::min(still_looks_, kMostDoublings);
    return std::clamp(slower, at_most_speed(left_bytes()), at_most_speed(limit_bytes_));
  }
  std::uint64_t wait = at_most_speed(left_bytes());
  if (bytes_per_ns_ > 0.0) {  // half of the remaining time at this speed
    const double left_ns = static_cast<double>(left_bytes()) / bytes_per_ns_ / 2;
    if (left_ns < static_cast<double>(wait)) wait = static_cast<std::uint64_t>(left_ns);
  }
  return std::max(wait, kShortestNs);
}

std::uint64_t Pace::left_bytes() const noexcept {
  const std::uint64_t grown = last_bytes_ - base_bytes_;
  return grown < headroom_bytes_ ? headroom_bytes_ - grown : 0;
}

}  // namespace lowtide

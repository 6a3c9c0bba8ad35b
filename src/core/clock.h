// clock.h - the monotonic clock that all rooms measure with.
#pragma once

#include <chrono>
#include <cstdint>

namespace lowtide {

[[nodiscard]] inline std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace lowtide

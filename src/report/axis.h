// axis.h - the positions of the ticks on an axis.
#pragma once

#include <cstdint>
#include <vector>

namespace lowtide {

// The values that get a line and a label, from 0; the last is at or above `top`.
struct ByteTicks {
  std::uint64_t step = 1;
  std::vector<std::uint64_t> at;
};
// Steps are powers of two, so that labels are round in KiB, MiB and GiB. At most `most` + 1 ticks.
[[nodiscard]] ByteTicks byte_ticks(std::uint64_t top, unsigned most);

// Round moments in [0, end], from 0: 1, 2, 5 times a power of ten seconds below a minute, then
// whole minutes and hours. At most `most` + 1.
[[nodiscard]] std::vector<double> time_ticks(double end_seconds, int most);

}  // namespace lowtide

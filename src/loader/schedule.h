// schedule.h - which positions of the one global order belong to which step of which rank.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lowtide {

// Rank r of W at step s gets positions (s * W + r) * B up to B further. Every position belongs to
// one step of one rank; the last batch may be short. With drop_last every rank has the same number
// of steps and every step is full.
struct Schedule {
  std::uint64_t size = 0;  // positions in an epoch
  std::uint64_t epoch = 0;
  std::uint64_t batch_size = 1;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  bool drop_last = false;

  [[nodiscard]] std::uint64_t steps() const {
    const std::uint64_t full = size / batch_size;
    if (drop_last) return full / world_size;
    const std::uint64_t batches = full + (size % batch_size != 0 ? 1 : 0);
    return batches / world_size + (rank < batches % world_size ? 1 : 0);
  }
  [[nodiscard]] std::uint64_t first(std::uint64_t step) const {
    return (step * world_size + rank) * batch_size;
  }
  [[nodiscard]] std::uint64_t count(std::uint64_t step) const {
    return std::min(batch_size, size - first(step));
  }
};

}  // namespace lowtide

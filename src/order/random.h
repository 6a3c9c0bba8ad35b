// random.h - samples drawn with replacement: a pure function of (limit, seed, epoch, position).
#pragma once

#include <cstdint>
#include <memory>

#include "order/order.h"

namespace lowtide {

// `positions` draws per epoch, each uniform over 0 .. limit - 1 without bias. Throws
// std::invalid_argument unless 1 <= limit <= 2^63. No table; O(1) at any position; any thread;
// position_of returns nullopt. The limit is part of the key but `positions` is not, so a longer
// epoch begins with the same draws. The values never change between versions, as with make_shuffle.
[[nodiscard]] std::unique_ptr<Order> make_random(std::uint64_t positions, std::uint64_t limit,
                                                 std::uint64_t seed);

}  // namespace lowtide

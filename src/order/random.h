// random.h - samples drawn with replacement: a pure function of (limit, seed, epoch, position).
#pragma once

#include <cstdint>
#include <memory>

#include "order/order.h"

namespace lowtide {

// `positions` draws an epoch, each uniform over 0 .. limit - 1 without bias (1 <= limit <= 2^63,
// else std::invalid_argument). No table, any thread, O(1) at any position; position_of gives
// nullopt. The limit is part of the key, `positions` is not: a longer epoch begins with the same
// draws. What it gives is a promise kept over versions, as with make_shuffle.
[[nodiscard]] std::unique_ptr<Order> make_random(std::uint64_t positions, std::uint64_t limit,
                                                 std::uint64_t seed);

}  // namespace lowtide

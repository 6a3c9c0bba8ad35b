// sort.h - a fast sort of samples into file order, for keys of a few known bits.
#pragma once

#include <cstdint>
#include <vector>

namespace lowtide {

// Sorts `keys` by their bits first_bit .. first_bit + bits - 1; the sort is stable. `scratch` is
// resized to the size of `keys`. About 3 ns per key for 22 bits.
void radix_sort(unsigned first_bit, unsigned bits, std::vector<std::uint64_t>* keys,
                std::vector<std::uint64_t>* scratch);

}  // namespace lowtide

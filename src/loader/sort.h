// sort.h - the order in which samples lie in the data, found fast: keys of a few known bits.
#pragma once

#include <cstdint>
#include <vector>

namespace lowtide {

// Sorts `keys` by their bits first_bit .. first_bit + bits - 1, equal ones as they came. `scratch`
// gets the size of `keys`. About 3 ns a key for 22 bits.
void radix_sort(unsigned first_bit, unsigned bits, std::vector<std::uint64_t>* keys,
                std::vector<std::uint64_t>* scratch);

}  // namespace lowtide

#include "loader/sort.h"

#include <array>
#include <cstddef>
#include <utility>

namespace lowtide {
namespace {

constexpr unsigned kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

}  // namespace

void radix_sort(unsigned first_bit, unsigned bits, std::vector<std::uint64_t>* keys,
                std::vector<std::uint64_t>* scratch) {
  scratch->resize(keys->size());
  for (unsigned shift = first_bit; shift < first_bit + bits; shift += kDigitBits) {
    std::array<std::size_t, kDigits> starts{};
    for (const std::uint64_t key : *keys) ++starts[key >> shift & (kDigits - 1)];
    std::size_t sum = 0;
    for (std::size_t& start : starts) sum += std::exchange(start, sum);
    for (const std::uint64_t key : *keys) (*scratch)[starts[key >> shift & (kDigits - 1)]++] = key;
    keys->swap(*scratch);
  }
}

}  // namespace lowtide

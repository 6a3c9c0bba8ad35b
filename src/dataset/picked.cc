#include "dataset/picked.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lowtide {
namespace {

constexpr std::uint64_t kWordBits = 32;
// Of one step of the vector code: the words that it looks at, and the numbers that it writes.
constexpr std::size_t kMostWindowWords = 32, kMostLanes = 16;

// Few columns may be picked, and in no order that a processor could foresee. So indices are found
// without a branch: each is written, and the next one over it unless it was a hit.
template <typename Index>
[[gnu::always_inline]] inline std::size_t find_some(const std::uint32_t* wanted,
                                                    const Index* indices, std::size_t first,
                                                    std::size_t end, std::uint32_t* at,
                                                    std::size_t found) {
  for (std::size_t i = first; i < end; ++i) {
    const auto column = static_cast<std::uint32_t>(indices[i]);
    at[found] = static_cast<std::uint32_t>(i);
    found += wanted[column / kWordBits] << column % kWordBits >> (kWordBits - 1);
  }
  return found;
}

template <typename Index>
std::size_t find_portable(const std::uint32_t* wanted, const PickedColumns::Row& row,
                          std::uint32_t* at) {
  return find_some(wanted, reinterpret_cast<const Index*>(row.indices), 0, row.count, at, 0);
}

#if defined(__x86_64__)
// Asks for what follows a place of the row by a page or two, where processors do not look ahead by
// themselves. The addresses may be anything.
template <typename Index>
[[gnu::always_inline]] inline void prefetch(const PickedColumns::Row& row, std::size_t place) {
  constexpr std::size_t kAhead = 1024;
  __builtin_prefetch(row.indices + (place + kAhead) * sizeof(Index));
  __builtin_prefetch(row.values + (place + kAhead) * row.value_bytes);
}

// With AVX2, one step looks at 8 indices and a window of 16 words.
constexpr std::size_t kLanes = 8, kWindowWords = 16;

// For each set of lanes, their numbers.
constexpr auto kLanesOfMask = [] {
  std::array<std::array<std::uint8_t, kLanes>, 1U << kLanes> table{};
  for (unsigned mask = 0; mask < table.size(); ++mask) {
    std::size_t found = 0;
    for (std::uint8_t lane = 0; lane < kLanes; ++lane) {
      if ((mask >> lane & 1U) != 0) table[mask][found++] = lane;
    }
  }
  return table;
}();

template <typename Index>
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i load_eight(const Index* indices) {
  if constexpr (sizeof(Index) == 8) {
    const __m256i low_words = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    const auto* const from = reinterpret_cast<const __m256i*>(indices);
    return _mm256_blend_epi32(_mm256_permutevar8x32_epi32(_mm256_loadu_si256(from), low_words),
                              _mm256_permutevar8x32_epi32(_mm256_loadu_si256(from + 1), low_words),
                              0xF0);
  } else if constexpr (sizeof(Index) == 4) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(indices));
  } else if constexpr (sizeof(Index) == 2) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(indices)));
  } else {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(indices)));
  }
}

// Indices are mostly sorted, so those of one step are near each other: their bits are in a window
// that two registers hold. Looking them up there is a permutation, several times as fast as loading
// each. Where indices are too far apart, they are loaded after all.
template <typename Index>
[[gnu::target("avx2,popcnt")]] std::size_t find_avx2(const std::uint32_t* wanted,
                                                     const PickedColumns::Row& row,
                                                     std::uint32_t* at) {
  const auto* const indices = reinterpret_cast<const Index*>(row.indices);
  const __m256i beyond = _mm256_set1_epi32(~static_cast<int>(kWindowWords * kWordBits - 1));
  const __m256i bit_mask = _mm256_set1_epi32(kWordBits - 1);
  std::size_t found = 0, i = 0;
  for (; i + kLanes <= row.count; i += kLanes) {
    prefetch<Index>(row, i);
    const std::uint32_t word = static_cast<std::uint32_t>(indices[i]) / kWordBits;
    const __m256i columns = load_eight(indices + i);
    const __m256i inside =
        _mm256_sub_epi32(columns, _mm256_set1_epi32(static_cast<int>(word * kWordBits)));
    if (_mm256_testz_si256(inside, beyond) == 0) {
      found = find_some(wanted, indices, i, i + kLanes, at, found);
      continue;
    }
    const auto* const window = reinterpret_cast<const __m256i*>(wanted + word);
    const __m256i words = _mm256_srli_epi32(inside, 5);
    const __m256i low = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(window), words);
    const __m256i high = _mm256_permutevar8x32_epi32(_mm256_loadu_si256(window + 1), words);
    const __m256 both = _mm256_blendv_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high),
                                         _mm256_castsi256_ps(_mm256_slli_epi32(inside, 23)));
    const __m256i hit =
        _mm256_sllv_epi32(_mm256_castps_si256(both), _mm256_and_si256(columns, bit_mask));
    const auto mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(hit)));
    const __m256i lanes = _mm256_cvtepu8_epi32(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kLanesOfMask[mask].data())));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + found),
                        _mm256_add_epi32(lanes, _mm256_set1_epi32(static_cast<int>(i))));
    found += static_cast<std::size_t>(std::popcount(mask));
  }
  return find_some(wanted, indices, i, row.count, at, found);
}

// GCC 12 warns of undefined lanes in the plain forms of these calls. With all lanes it makes the
// same code.
constexpr __mmask16 kAll = 0xFFFF;

template <typename Index>
[[gnu::target("avx512f"), gnu::always_inline]] inline __m512i load_sixteen(const Index* indices) {
  if constexpr (sizeof(Index) == 8) {
    const __m256i low = _mm512_maskz_cvtepi64_epi32(0xFF, _mm512_loadu_si512(indices));
    const __m256i high = _mm512_maskz_cvtepi64_epi32(0xFF, _mm512_loadu_si512(indices + 8));
    return _mm512_maskz_inserti64x4(0xFF, _mm512_castsi256_si512(low), high, 1);
  } else if constexpr (sizeof(Index) == 4) {
    return _mm512_loadu_si512(indices);
  } else if constexpr (sizeof(Index) == 2) {
    return _mm512_maskz_cvtepu16_epi32(
        kAll, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(indices)));
  } else {
    return _mm512_maskz_cvtepu8_epi32(kAll,
                                      _mm_loadu_si128(reinterpret_cast<const __m128i*>(indices)));
  }
}

// The same with 16 indices and a window of 32 words.
template <typename Index>
[[gnu::target("avx512f,popcnt")]] std::size_t find_avx512(const std::uint32_t* wanted,
                                                          const PickedColumns::Row& row,
                                                          std::uint32_t* at) {
  const auto* const indices = reinterpret_cast<const Index*>(row.indices);
  const __m512i beyond = _mm512_set1_epi32(~static_cast<int>(2 * kWindowWords * kWordBits - 1));
  __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  std::size_t found = 0, i = 0;
  for (; i + 2 * kLanes <= row.count; i += 2 * kLanes) {
    prefetch<Index>(row, i);
    const std::uint32_t word = static_cast<std::uint32_t>(indices[i]) / kWordBits;
    const __m512i columns = load_sixteen(indices + i);
    const __m512i inside =
        _mm512_sub_epi32(columns, _mm512_set1_epi32(static_cast<int>(word * kWordBits)));
    if (_mm512_test_epi32_mask(inside, beyond) != 0) {
      found = find_some(wanted, indices, i, i + 2 * kLanes, at, found);
    } else {
      const __m512i words = _mm512_permutex2var_epi32(_mm512_loadu_si512(wanted + word),
                                                      _mm512_maskz_srli_epi32(kAll, inside, 5),
                                                      _mm512_loadu_si512(wanted + word + 16));
      const __mmask16 hit = _mm512_cmplt_epi32_mask(_mm512_maskz_rolv_epi32(kAll, words, columns),
                                                    _mm512_setzero_si512());
      _mm512_storeu_si512(at + found, _mm512_maskz_compress_epi32(hit, numbers));
      found += static_cast<std::size_t>(std::popcount(static_cast<unsigned>(hit)));
    }
    numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(2 * kLanes));
  }
  return find_some(wanted, indices, i, row.count, at, found);
}
#else
template <typename Index>
constexpr auto find_avx2 = find_portable<Index>;
template <typename Index>
constexpr auto find_avx512 = find_portable<Index>;
#endif

}  // namespace

PickedColumns::PickedColumns(std::uint64_t columns, const std::vector<std::uint64_t>& picked) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (picked.size() > kMost || columns > kMost) {
    throw std::invalid_argument(
        "columns: the selection and the matrix must each have fewer than 2^31 columns, not " +
        std::to_string(picked.size()) + " and " + std::to_string(columns));
  }
  wanted_.assign(columns / kWordBits + 1 + kMostWindowWords, 0);
  first_place_.assign(columns, -1);
  next_place_.assign(picked.size(), -1);
  for (std::size_t i = picked.size(); i-- > 0;) {  // backwards, so that places of a column ascend
    const std::uint64_t column = picked[i];
    if (column >= columns) {
      throw std::out_of_range("columns: column " + std::to_string(column) +
                              " does not exist: the matrix has " + std::to_string(columns));
    }
    next_place_[i] = first_place_[column];
    repeated_ = repeated_ || next_place_[i] >= 0;
    wanted_[column / kWordBits] |= 1U << (kWordBits - 1 - column % kWordBits);
    first_place_[column] = static_cast<std::int32_t>(i);
  }
}

std::size_t PickedColumns::find(TokenType type, const Row& row, Hits& hits,
                                PickKernel kernel) const {
  if (hits.at.size() < row.count + kMostLanes) {
    hits.at.resize(row.count + kMostLanes);
    hits.place.resize(row.count);
  }
  std::size_t found = 0;
  with_token_type(type, [&]<typename Index>(Index /*zero*/) {
    auto* find = find_portable<Index>;
    if (kernel >= PickKernel::kAvx2 && has_avx2()) find = find_avx2<Index>;
    if (kernel == PickKernel::kAvx512 && has_avx512()) find = find_avx512<Index>;
    found = find(wanted_.data(), row, hits.at.data());
    const auto* const indices = reinterpret_cast<const Index*>(row.indices);
    for (std::size_t hit = 0; hit < found; ++hit) {
      hits.place[hit] = first_place_[static_cast<std::size_t>(indices[hits.at[hit]])];
    }
  });
  return found;
}

}  // namespace lowtide

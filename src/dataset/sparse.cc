#include "dataset/sparse.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "core/cpu.h"
#include "dataset/widen.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

// A float16 as it is stored.
struct Half {
  std::uint16_t bits;

  explicit operator float() const {
    constexpr std::uint32_t kExponent = 0x0F80'0000U, kRebias = (127U - 15U) << 23U;
    std::uint32_t wide = (bits & 0x7FFFU) << 13U;
    const std::uint32_t exponent = wide & kExponent;
    wide += kRebias;
    if (exponent == kExponent) wide += (128U - 16U) << 23U;  // infinite, or not a number
    if (exponent == 0) {                                     // subnormal
      wide += 1U << 23U;
      wide = std::bit_cast<std::uint32_t>(std::bit_cast<float>(wide) -
                                          std::bit_cast<float>(113U << 23U));
    }
    return std::bit_cast<float>(wide | (bits & 0x8000U) << 16U);
  }
  explicit operator double() const { return static_cast<float>(*this); }

  // To the nearest, ties to even.
  static Half of(float value) {
    constexpr std::uint32_t kTooLarge = 0x4780'0000U;   // 2^16
    constexpr std::uint32_t kSubnormal = 0x3880'0000U;  // below 2^-14
    const auto signed_bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = signed_bits >> 16U & 0x8000U;
    std::uint32_t wide = signed_bits & 0x7FFF'FFFFU;
    if (wide >= kTooLarge) {
      return {static_cast<std::uint16_t>(sign | (wide > 0x7F80'0000U ? 0x7E00U : 0x7C00U))};
    }
    if (wide < kSubnormal) {  // the addition rounds
      const float shifted = std::bit_cast<float>(wide) + 0.5F;
      return {static_cast<std::uint16_t>(
          sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F)))};
    }
    wide += 0xFFFU + (wide >> 13U & 1U) - ((127U - 15U) << 23U);
    return {static_cast<std::uint16_t>(sign | wide >> 13U)};
  }
};

// A truth value as it is stored: any byte but 0 is true.
struct Truth {
  std::uint8_t bits;

  explicit operator float() const { return bits != 0 ? 1.0F : 0.0F; }
  explicit operator double() const { return bits != 0 ? 1.0 : 0.0; }
};

// Calls `use` with a zero of the C++ type of stored values. False: these are not numbers.
template <typename Use>
bool with_value_type(char kind, std::size_t bytes, Use use) {
  if (kind == 'f') {
    if (bytes == 2) return use(Half{}), true;
    if (bytes == 4) return use(float{}), true;
    if (bytes == 8) return use(double{}), true;
    return false;
  }
  if (kind == 'b') return use(Truth{}), true;
  for (std::size_t i = 0; i < kTokenTypes; ++i) {
    if (kTokenTypeTable[i].kind != kind || kTokenTypeTable[i].bytes != bytes) continue;
    with_token_type(static_cast<TokenType>(i), use);
    return true;
  }
  return false;
}

// The highest of some integers, taken as unsigned ones: a negative one becomes a huge one. One pass
// without a branch, which compilers vectorise.
template <typename T>
struct Highest {
  using Bits = std::make_unsigned_t<T>;

  [[gnu::always_inline]] static inline Bits run(const T* all, std::size_t count) {
    Bits most = 0;
    for (std::size_t i = 0; i < count; ++i) most = std::max(most, static_cast<Bits>(all[i]));
    return most;
  }
  static Bits portable(const T* all, std::size_t count) { return run(all, count); }
#if defined(__x86_64__)
  [[gnu::target("avx2")]] static Bits widest(const T* all, std::size_t count) {
    return run(all, count);
  }
#else
  static constexpr auto widest = portable;
#endif
};

}  // namespace

std::optional<DenseType> dense_type_named(std::string_view name) {
  if (name == "float16") return DenseType::f16;
  if (name == "float32") return DenseType::f32;
  if (name == "float64") return DenseType::f64;
  return std::nullopt;
}

std::size_t first_not_below(TokenType type, const std::byte* integers, std::size_t count,
                            std::uint64_t below) {
  std::size_t found = count;
  with_token_type(type, [&]<typename T>(T /*zero*/) {
    using Bits = std::make_unsigned_t<T>;
    const auto* const all = reinterpret_cast<const T*>(integers);
    // If even a huge one is allowed, only the sign counts.
    constexpr std::uint64_t kMost = std::numeric_limits<Bits>::max();
    if (below > kMost && std::is_unsigned_v<T>) return;
    const auto limit = static_cast<Bits>(
        std::min(below - 1, static_cast<std::uint64_t>(std::numeric_limits<T>::max())));
    const Bits most =
        has_avx2() ? Highest<T>::widest(all, count) : Highest<T>::portable(all, count);
    if (most <= limit && below > 0) return;
    const auto wrong = std::find_if(
        all, all + count, [&](T one) { return below == 0 || static_cast<Bits>(one) > limit; });
    found = static_cast<std::size_t>(wrong - all);
  });
  return found;
}

void throw_wrong_index(const std::string& path, std::uint64_t row, TokenType type,
                       const std::byte* integers, std::size_t place, std::uint64_t columns) {
  throw FormatError(path + ": row " + std::to_string(row) + " has index " +
                    token_text(type, integers, place) + ", but the matrix has " +
                    std::to_string(columns) + " columns");
}

DenseRows::DenseRows(const DType& values, TokenType indices, std::uint64_t columns, DenseType to,
                     const std::optional<std::vector<std::uint64_t>>& picked)
    : value_kind_(values.kind),
      value_bytes_(values.itemsize_bytes),
      indices_(indices),
      columns_(columns),
      to_(to) {
  const bool foreign = values.byte_order == '>' && values.itemsize_bytes > 1;
  if (foreign || !with_value_type(value_kind_, value_bytes_, [](auto /*zero*/) {})) {
    throw std::invalid_argument("dense: values of type " + values.descr() +
                                " cannot become floating-point numbers");
  }
  if (picked) picked_.emplace(columns, *picked);
}

std::uint64_t DenseRows::item_bytes() const {
  switch (to_) {
    case DenseType::f16:
      return 2;
    case DenseType::f32:
      return 4;
    case DenseType::f64:
      break;
  }
  return 8;
}

// Adds the values of a row, whose indices are all below columns_.
template <typename Value, typename Sum>
void DenseRows::add(const Value* values, const std::byte* indices, std::size_t count, Sum* row,
                    PickedColumns::Hits& hits) const {
  if (!picked_) {
    with_token_type(indices_, [&]<typename Index>(Index /*zero*/) {
      const auto* const at = reinterpret_cast<const Index*>(indices);
      for (std::size_t i = 0; i < count; ++i) row[at[i]] += static_cast<Sum>(values[i]);
    });
    return;
  }
  const PickedColumns::Row stored{.indices = indices,
                                  .values = reinterpret_cast<const std::byte*>(values),
                                  .value_bytes = sizeof(Value),
                                  .count = count};
  const std::size_t found = picked_->find(indices_, stored, hits);
  for (std::size_t hit = 0; hit < found; ++hit) {
    row[hits.place[hit]] += static_cast<Sum>(values[hits.at[hit]]);
  }
  if (!picked_->repeated()) return;
  for (std::size_t hit = 0; hit < found; ++hit) {
    std::int32_t place = picked_->next_place(hits.place[hit]);
    for (; place >= 0; place = picked_->next_place(place)) {
      row[place] += static_cast<Sum>(values[hits.at[hit]]);
    }
  }
}

template <typename Sum>
bool DenseRows::fill_as(const std::byte* values, const std::byte* indices, std::size_t count,
                        Sum* row, PickedColumns::Hits& hits) const {
  std::memset(row, 0, width() * sizeof(Sum));
  if (first_not_below(indices_, indices, count, columns_) != count) return false;
  with_value_type(value_kind_, value_bytes_, [&]<typename Value>(Value /*zero*/) {
    add(reinterpret_cast<const Value*>(values), indices, count, row, hits);
  });
  return true;
}

bool DenseRows::fill(const std::byte* values, const std::byte* indices, std::size_t count,
                     std::byte* row, Scratch& scratch) const {
  if (to_ == DenseType::f64) {
    return fill_as(values, indices, count, reinterpret_cast<double*>(row), scratch.hits);
  }
  if (to_ == DenseType::f32) {
    return fill_as(values, indices, count, reinterpret_cast<float*>(row), scratch.hits);
  }
  scratch.sums.resize(width());
  if (!fill_as(values, indices, count, scratch.sums.data(), scratch.hits)) return false;
  auto* const halves = reinterpret_cast<Half*>(row);
  for (std::uint64_t i = 0; i < width(); ++i) halves[i] = Half::of(scratch.sums[i]);
  return true;
}

}  // namespace lowtide

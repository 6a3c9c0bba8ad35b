#include "dataset/sparse.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "dataset/widen.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::size_t kValuesTogether = 512;  // values that are looked at together

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

// Calls `use` with a value of the C++ type.
template <typename Use>
void with_index_type(TokenType type, Use use) {
  [&]<std::size_t... kTypes>(std::index_sequence<kTypes...>) {
    ((static_cast<std::size_t>(type) == kTypes ? use(std::tuple_element_t<kTypes, TokenCppTypes>{})
                                               : void()),
     ...);
  }(std::make_index_sequence<kTokenTypes>());
}

// The same for stored values. False: these are not numbers.
template <typename Use>
bool with_value_type(char kind, std::size_t bytes, Use use) {
  if (kind == 'f') {
    if (bytes == 2) return use(Half{}), true;
    if (bytes == 4) return use(float{}), true;
    if (bytes == 8) return use(double{}), true;
    return false;
  }
  if (kind == 'b') return use(std::uint8_t{}), true;
  for (std::size_t i = 0; i < kTokenTypes; ++i) {
    if (kTokenTypeTable[i].kind != kind || kTokenTypeTable[i].bytes != bytes) continue;
    with_index_type(static_cast<TokenType>(i), use);
    return true;
  }
  return false;
}

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
  with_index_type(type, [&]<typename T>(T /*zero*/) {
    using Bits = std::make_unsigned_t<T>;
    const auto* const all = reinterpret_cast<const T*>(integers);
    // A negative one becomes a huge one. If even that is allowed, only the sign counts.
    constexpr std::uint64_t kMost = std::numeric_limits<Bits>::max();
    if (below > kMost && std::is_unsigned_v<T>) return;
    const auto limit = static_cast<Bits>(
        std::min(below - 1, static_cast<std::uint64_t>(std::numeric_limits<T>::max())));
    Bits most = 0;  // one pass without a branch, which compilers vectorise
    for (std::size_t i = 0; i < count; ++i) most = std::max(most, static_cast<Bits>(all[i]));
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
      to_(to),
      width_(picked ? picked->size() : columns) {
  const bool foreign = values.byte_order == '>' && values.itemsize_bytes > 1;
  if (foreign || !with_value_type(value_kind_, value_bytes_, [](auto /*zero*/) {})) {
    throw std::invalid_argument("dense: values of type " + values.descr() +
                                " cannot become floating-point numbers");
  }
  if (!picked) return;
  if (width_ > std::numeric_limits<std::int32_t>::max() ||
      columns > std::numeric_limits<std::int32_t>::max()) {
    throw std::invalid_argument(
        "columns: of a matrix with 2**31 columns or more none can be "
        "picked");
  }
  wanted_.assign(columns, 0);
  first_place_.assign(columns, -1);
  next_place_.assign(width_, -1);
  for (std::size_t i = width_; i-- > 0;) {  // backwards, so that places of a column ascend
    const std::uint64_t column = (*picked)[i];
    if (column >= columns) {
      throw std::out_of_range("columns: column " + std::to_string(column) +
                              " does not exist: there are " + std::to_string(columns));
    }
    next_place_[i] = first_place_[column];
    wanted_[column] = 1;
    first_place_[column] = static_cast<std::int32_t>(i);
  }
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

template <typename Index, typename Sum>
void DenseRows::add(const Sum* values, const Index* indices, std::size_t count, Sum* row) const {
  if (first_place_.empty()) {
    for (std::size_t i = 0; i < count; ++i) row[indices[i]] += values[i];
    return;
  }
  // Few columns may be picked, and in no order that a processor could foresee. So the values that
  // are wanted are found without a branch first.
  const std::uint8_t* const wanted = wanted_.data();
  const std::int32_t *const first = first_place_.data(), *const next = next_place_.data();
  std::uint32_t hits[kValuesTogether];
  for (std::size_t start = 0; start < count; start += kValuesTogether) {
    const std::size_t end = std::min(count, start + kValuesTogether);
    std::size_t found = 0;
    for (std::size_t i = start; i < end; ++i) {
      hits[found] = static_cast<std::uint32_t>(i - start);
      found += wanted[indices[i]];
    }
    for (std::size_t hit = 0; hit < found; ++hit) {
      const std::size_t i = start + hits[hit];
      std::int32_t place = first[indices[i]];
      do {
        row[place] += values[i];
        place = next[place];
      } while (place >= 0);
    }
  }
}

template <typename Sum>
void DenseRows::fill_as(const std::byte* values, const std::byte* indices, std::size_t count,
                        Sum* row, std::vector<std::byte>& scratch) const {
  std::memset(row, 0, width_ * sizeof(Sum));
  const Sum* numbers = nullptr;
  with_value_type(value_kind_, value_bytes_, [&]<typename Value>(Value /*zero*/) {
    const auto* const stored = reinterpret_cast<const Value*>(values);
    if constexpr (std::is_same_v<Value, Sum>) {
      numbers = stored;
    } else {
      if (scratch.size() < count * sizeof(Sum)) scratch.resize(count * sizeof(Sum));
      auto* const made = reinterpret_cast<Sum*>(scratch.data());
      const bool truth = value_kind_ == 'b';
      for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<Sum>(stored[i]);
      if (truth) {
        for (std::size_t i = 0; i < count; ++i) made[i] = made[i] != 0 ? Sum{1} : Sum{0};
      }
      numbers = made;
    }
  });
  with_index_type(indices_, [&]<typename Index>(Index /*zero*/) {
    add(numbers, reinterpret_cast<const Index*>(indices), count, row);
  });
}

void DenseRows::fill(const std::byte* values, const std::byte* indices, std::size_t count,
                     std::byte* row, Scratch& scratch) const {
  if (to_ == DenseType::f64) {
    return fill_as(values, indices, count, reinterpret_cast<double*>(row), scratch.values);
  }
  if (to_ == DenseType::f32) {
    return fill_as(values, indices, count, reinterpret_cast<float*>(row), scratch.values);
  }
  scratch.row.resize(width_ * sizeof(float));
  auto* const sums = reinterpret_cast<float*>(scratch.row.data());
  fill_as(values, indices, count, sums, scratch.values);
  auto* const halves = reinterpret_cast<Half*>(row);
  for (std::uint64_t i = 0; i < width_; ++i) halves[i] = Half::of(sums[i]);
}

}  // namespace lowtide

// token_type.h - the integer types in which tokens are stored and delivered. Every other list of
// integer types, in C++ and in Python, is made from this table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "lowtide/dtype.h"

namespace lowtide {

enum class TokenType : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64 };

// The C++ types, in the order of TokenType.
using TokenCppTypes = std::tuple<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t,
                                 std::uint32_t, std::int32_t, std::uint64_t, std::int64_t>;
inline constexpr std::size_t kTokenTypes = std::tuple_size_v<TokenCppTypes>;

struct TokenTypeRow {
  std::string_view name;  // NumPy's: "uint16"
  char kind;              // as DType::kind
  std::size_t bytes;
  std::int64_t lowest;
  std::uint64_t highest;

  template <typename T>
  [[nodiscard]] static constexpr TokenTypeRow of(std::string_view name) {
    using Limits = std::numeric_limits<T>;
    return {name, Limits::is_signed ? 'i' : 'u', sizeof(T),
            static_cast<std::int64_t>(Limits::min()), static_cast<std::uint64_t>(Limits::max())};
  }
};

// In the order of TokenType.
inline constexpr std::array<TokenTypeRow, kTokenTypes> kTokenTypeTable{
    TokenTypeRow::of<std::uint8_t>("uint8"),   TokenTypeRow::of<std::int8_t>("int8"),
    TokenTypeRow::of<std::uint16_t>("uint16"), TokenTypeRow::of<std::int16_t>("int16"),
    TokenTypeRow::of<std::uint32_t>("uint32"), TokenTypeRow::of<std::int32_t>("int32"),
    TokenTypeRow::of<std::uint64_t>("uint64"), TokenTypeRow::of<std::int64_t>("int64"),
};

[[nodiscard]] constexpr const TokenTypeRow& token_type_row(TokenType type) {
  return kTokenTypeTable[static_cast<std::size_t>(type)];
}
[[nodiscard]] constexpr std::size_t token_bytes(TokenType type) {
  return token_type_row(type).bytes;
}
[[nodiscard]] constexpr std::string_view token_type_name(TokenType type) {
  return token_type_row(type).name;
}

// Calls `use` with a zero of the C++ type.
template <typename Use>
constexpr void with_token_type(TokenType type, Use use) {
  [&]<std::size_t... kTypes>(std::index_sequence<kTypes...>) {
    ((static_cast<std::size_t>(type) == kTypes ? use(std::tuple_element_t<kTypes, TokenCppTypes>{})
                                               : void()),
     ...);
  }(std::make_index_sequence<kTokenTypes>());
}

// nullopt: not the name of such a type.
[[nodiscard]] constexpr std::optional<TokenType> token_type_named(std::string_view name) {
  for (std::size_t i = 0; i < kTokenTypes; ++i) {
    if (kTokenTypeTable[i].name == name) return static_cast<TokenType>(i);
  }
  return std::nullopt;
}

// nullopt: not a little-endian (or one-byte) integer of at most 8 bytes.
[[nodiscard]] inline std::optional<TokenType> token_type(const DType& dtype) {
  if (dtype.byte_order == '>' && dtype.itemsize_bytes > 1) return std::nullopt;
  for (std::size_t i = 0; i < kTokenTypes; ++i) {
    const TokenTypeRow& row = kTokenTypeTable[i];
    if (dtype.kind == row.kind && dtype.itemsize_bytes == row.bytes) {
      return static_cast<TokenType>(i);
    }
  }
  return std::nullopt;
}

}  // namespace lowtide

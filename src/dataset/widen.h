// widen.h - turns tokens as stored into tokens as delivered, in one pass that reads each token
// once.
//
// Pure functions over the caller's memory. Only texts are allocated. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lowtide/dtype.h"

namespace lowtide {

// The integer types that tokens are stored and delivered in.
enum class TokenType : std::uint8_t { u8, i8, u16, i16, u32, i32, u64, i64 };

// nullopt: not a little-endian (or one-byte) integer of at most 8 bytes.
[[nodiscard]] std::optional<TokenType> token_type(const DType& dtype);
[[nodiscard]] std::size_t token_bytes(TokenType type);
// "uint16", "int64".
[[nodiscard]] std::string_view token_type_name(TokenType type);

// Which code widens. All give the same results; kPortable is for tests.
enum class WidenKernel : std::uint8_t { kBest, kPortable };

// Widens `count` tokens at `from` (no alignment needed) into `x` (tokens 0 .. count - 2) and `y`
// (tokens 1 .. count - 1), each count - 1 entries; count >= 1. x and y must be aligned for their
// type; from, x and y must not overlap. False: one of the `count` tokens does not fit `to` (it is
// negative or too large); then the contents of x and y are undefined.
[[nodiscard]] bool widen(TokenType type, const std::byte* from, std::size_t count, TokenType to,
                         std::byte* x, std::byte* y, WidenKernel kernel = WidenKernel::kBest);

// The first of `count` tokens that does not fit `to`; count if all fit. For error messages.
[[nodiscard]] std::size_t first_misfit(TokenType type, const std::byte* from, std::size_t count,
                                       TokenType to);

// Token i as text: "70000", "-1".
[[nodiscard]] std::string token_text(TokenType type, const std::byte* from, std::size_t i);

}  // namespace lowtide

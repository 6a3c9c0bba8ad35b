// widen.h - turns tokens as stored into tokens as delivered, in one pass that reads each token
// once.
//
// Pure functions over the caller's memory. Only texts are allocated. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/token_type.h"

namespace lowtide {

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

// store_tokens.h - turns token ids of any integer type into the type of a file. Pure functions over
// the caller's memory. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/token_type.h"

namespace lowtide {

// The index of the first of `count` ids at `from` that does not fit `to`; nullopt if all fit.
[[nodiscard]] std::optional<std::size_t> first_unfit(TokenType type, const std::byte* from,
                                                     std::size_t count, TokenType to);

// What to say of the id of `type` at `from`, a token of a document, which does not fit `to`.
[[nodiscard]] std::string unfit_text(std::uint64_t document, std::uint64_t token, TokenType type,
                                     const std::byte* from, TokenType to);

// Converts `count` ids, which all fit `to`. Neither side needs alignment; they must not overlap.
void store_tokens(TokenType type, const std::byte* from, std::size_t count, TokenType to,
                  std::byte* out);

}  // namespace lowtide

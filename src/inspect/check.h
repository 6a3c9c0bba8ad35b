// check.h - the two halves of check(): every byte of an array, every token of a stream.
#pragma once

#include <cstdint>

#include "lowtide/array.h"
#include "lowtide/info.h"
#include "lowtide/tokens.h"

namespace lowtide {

// Read at a time; small beside any budget that a check is given.
inline constexpr std::uint64_t kCheckPieceBytes = 4 << 20;

// Both complete `result`, whose info is there. They throw as check() does.
void check_array(const Array& array, const CheckOptions& options, CheckResult* result);
void check_tokens(const Tokens& tokens, const CheckOptions& options, CheckResult* result);

}  // namespace lowtide

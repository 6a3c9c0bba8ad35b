// check.h - the two halves of check(): every byte of an array, every token of a stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lowtide/array.h"
#include "lowtide/info.h"
#include "lowtide/tokens.h"

namespace lowtide {

// Read per step; small compared with any budget for a check.
inline constexpr std::uint64_t kCheckBlockBytes = 4 << 20;

// Both complete `result`, whose info is already set. They throw what check() throws.
void check_array(const Array& array, const CheckOptions& options, CheckResult* result);
// All arrays of the files that `paths` stands for, which the info lists.
void check_arrays(std::span<const std::string> paths, bool expand, const CheckOptions& options,
                  CheckResult* result);
void check_tokens(const Tokens& tokens, const CheckOptions& options, CheckResult* result);

}  // namespace lowtide

// nanogpt.h - tokens and nothing else, as nanoGPT's prepare.py writes them: no header, so the
// caller says what they are, or they are uint16.
#pragma once

#include "format/token_source.h"

namespace lowtide::nanogpt {

// Any file: this format takes what no other knows.
[[nodiscard]] bool matches(const TokenSource& source);

// Throws FormatError: a size that is not a multiple of the token; without a dtype given, a first
// 64 KiB that only uint32 tokens explain.
[[nodiscard]] TokenLayout open(const TokenSource& source);

// The same under another format word.
[[nodiscard]] TokenLayout open_as(std::string_view format, const TokenSource& source);

}  // namespace lowtide::nanogpt

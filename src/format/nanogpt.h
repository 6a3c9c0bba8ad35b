// nanogpt.h - plain tokens without a header, as nanoGPT's prepare.py writes them. They are uint16
// unless the caller gives another dtype.
#pragma once

#include "format/token_source.h"

namespace lowtide::nanogpt {

// Takes every file that no other format recognises.
extern const TokenFormat kFormat;

// Throws FormatError for a size that is not a multiple of the token size, and, without a dtype, for
// a file whose first 64 KiB look like uint32 tokens.
[[nodiscard]] TokenLayout open(const TokenSource& source);

}  // namespace lowtide::nanogpt

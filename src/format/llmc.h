// llmc.h - the token files of llm.c and modded-nanogpt: a header of 256 int32 (magic, version,
// number of tokens, then zeros), followed by uint16 or uint32 tokens, depending on the magic.
#pragma once

#include "format/token_source.h"

namespace lowtide::llmc {

constexpr std::uint64_t kHeaderBytes = 1024;

// Recognises the magic, including that of an evaluation file, which open() refuses by name.
[[nodiscard]] bool matches(const TokenSource& source);

// Throws FormatError for another magic, an evaluation file, a version that does not go with the
// magic, a negative count, or a file that is not exactly as long as the count says.
[[nodiscard]] TokenLayout open(const TokenSource& source);

}  // namespace lowtide::llmc

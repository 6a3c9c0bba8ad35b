// llmc.h - the token files of llm.c and modded-nanogpt: a header of 256 int32 (magic, version,
// number of tokens, then zeros), then uint16 or uint32 tokens, by the magic.
#pragma once

#include "format/token_source.h"

namespace lowtide::llmc {

constexpr std::uint64_t kHeaderBytes = 1024;

// By the magic, also that of an evaluation file: open() refuses it by name.
[[nodiscard]] bool matches(const TokenSource& source);

// Throws FormatError: another magic, an evaluation file, a version that the magic does not have, a
// negative count, a file that is not exactly as long as the count says.
[[nodiscard]] TokenLayout open(const TokenSource& source);

}  // namespace lowtide::llmc

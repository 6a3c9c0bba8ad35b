// llmc.h - the token files of llm.c and modded-nanogpt: a header of 256 int32 (magic, version,
// number of tokens, then zeros), followed by uint16 or uint32 tokens, depending on the magic.
#pragma once

#include "format/token_source.h"

namespace lowtide::llmc {

constexpr std::uint64_t kHeaderBytes = 1024;

// Recognises the magic, including that of an evaluation file, which it refuses by name. Refuses
// another magic, a version that does not go with the magic, a negative count, and a file that is
// not exactly as long as the count says.
extern const TokenFormat kFormat;

}  // namespace lowtide::llmc

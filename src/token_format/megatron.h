// megatron.h - the file pairs of Megatron and GPT-NeoX: an index (.idx) that says where the
// sequences are in the tokens (.bin).
//
// Index: "MMIDIDX\0\0", u64 version, u8 dtype code, u64 S, u64 D, then i32[S] lengths, i64[S]
// pointers in bytes, i64[D] document boundaries and, for multimodal data, i8[S] modes. The arrays
// are not aligned. The data has no header.
#pragma once

#include "token_format/token_output.h"

namespace lowtide::megatron {

// Recognises the magic of the file or, for a .bin, of the .idx beside it. It also recognises the
// legacy magic "TNTIDX", which it refuses by name.
//
// Reads and checks the whole index, in slices of at most 256 KiB; the data is not read. Contiguous
// sequences become one extent, so a file as the tools write it has one. Bytes of the data that no
// sequence uses are allowed. Refuses:
// - a missing partner, the legacy format, another version, or counts that contradict the file size;
// - floats, because the two tools disagree on their codes;
// - a sequence outside the data, or an empty one that points neither to the end of the sequence
//   before it nor to the start of the one after it;
// - boundaries that decrease or do not go from 0 to S;
// - more than kMostExtents extents.
extern const TokenFormat kFormat;

// Writes one sequence per document, without modes, as megatron-core does for text. Documents have
// fewer than 2^31 tokens.
extern const TokenOutput kOutput;

}  // namespace lowtide::megatron

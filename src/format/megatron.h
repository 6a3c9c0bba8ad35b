// megatron.h - the pairs of Megatron and GPT-NeoX: an index (.idx) that says where the sequences
// lie in the tokens (.bin).
//
// Index: "MMIDIDX\0\0", u64 version, u8 dtype code, u64 S, u64 D, then i32[S] lengths, i64[S]
// pointers in bytes, i64[D] document boundaries and, of multimodal data, i8[S] modes. No array is
// aligned. The data has no header.
#pragma once

#include "format/token_source.h"

namespace lowtide::megatron {

// By the magic of the file, or, for a .bin, of the .idx beside it. The legacy magic "TNTIDX" is one
// too: open() refuses it by name.
[[nodiscard]] bool matches(const TokenSource& source);

// Reads and checks the whole index, in pieces of at most 256 KiB; the data is not read. Sequences
// that lie one behind the other become one run, so a file as the tools write it has one. Throws
// FormatError: no partner, legacy, another version, floats (the two tools disagree on their codes),
// counts that contradict the size of the index, sequences outside the data, an empty sequence that
// points neither behind the one before nor at the one after it, boundaries that go down or do not
// go from 0 to S, more than kMostRuns runs. Bytes of the data that no sequence uses are allowed.
[[nodiscard]] TokenLayout open(const TokenSource& source);

}  // namespace lowtide::megatron

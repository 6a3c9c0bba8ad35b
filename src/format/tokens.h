// tokens.h - what a token file promises: in which format it is, and where its tokens lie.
//
// Pure: it sees bytes through callbacks and opens nothing. A format is one file in this room
// (token_source.h is its side of the contract) and one line in the table of tokens.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "format/registry.h"
#include "lowtide/dtype.h"

namespace lowtide {

// A file as a format sees it.
struct TokenFile {
  std::string path;
  std::uint64_t file_bytes = 0;
  ReadStart read;  // of bytes inside the file, any place, up to 1 MiB at a time
};

// Opens a file beside the first one; nullopt where there is none. What it throws passes through.
// Called for each file that ends in .bin, and maybe twice.
using OpenBeside = std::function<std::optional<TokenFile>(const std::string& path)>;

// Tokens that lie one behind the other.
struct TokenRun {
  std::uint64_t offset_bytes = 0;  // in the data file; any byte, aligned to nothing
  std::uint64_t tokens = 0;
  std::uint64_t first_sequence = 0;  // of the index, where there is one
};

// Where the boundaries of documents are written: Megatron's arrays, none of them aligned. Document
// d is the sequences documents[d] up to documents[d + 1]; sequence s starts at byte pointers[s] of
// the data file.
//
// All of it was checked, so these hold: documents[] goes from 0 to `sequences` and never down;
// where there are runs, pointers[s] lies in the last run with first_sequence <= s, or at its end,
// a whole number of tokens behind its start. So the place of s in the stream is the tokens of the
// runs before plus (pointers[s] - offset_bytes) / item size; for s == sequences it is all tokens.
struct DocumentIndex {
  std::string path;
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;               // not counting the end mark
  std::uint64_t pointers_offset_bytes = 0;   // int64[sequences]
  std::uint64_t documents_offset_bytes = 0;  // int64[documents + 1]
};

constexpr std::size_t kMostRuns = 65536;
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 60;

// These hold: dtype is a little-endian integer of 1, 2, 4 or 8 bytes; runs lie inside the data
// file; tokens is their sum, below kMostTokens. A header may promise no tokens: then there are no
// runs.
struct TokenLayout {
  std::string format;     // "nanogpt", "llmc", "megatron", "olmo", "npy"
  std::string data_path;  // where the runs are: for Megatron the .bin, whichever was named
  DType dtype;
  std::uint64_t tokens = 0;
  std::vector<TokenRun> runs;  // in the order of the stream; at most kMostRuns, none empty
  std::optional<DocumentIndex> documents;
};

// What the caller says; nullopt is "not said".
struct TokenGiven {
  std::optional<DType> dtype;         // must agree with a header; decides where there is none
  std::optional<std::string> format;  // a format word, or "raw" for "nanogpt"; the bytes must agree
};

// The layout of the file, by its bytes. `file` may be the .idx or the .bin of a Megatron pair; of
// headerless files one whose name ends in .npy is "olmo", any other "nanogpt", and without a dtype
// given their tokens are uint16. Throws FormatError that names the path, what was expected and what
// was found: an empty file; a size that is not a multiple of the token; a type that is not a
// little-endian integer; without a dtype given, headerless tokens that look like uint32 and files
// of other tools (foreign.h); counts, pointers and sizes that contradict each other.
// std::invalid_argument for a format word that is not one, listing those that are.
//
// Holds at most 512 KiB and the runs (and of a .npy its header, at most 1 MiB of text), whatever
// counts claim. An index is read once, in pieces.
[[nodiscard]] TokenLayout open_token_layout(const TokenFile& file, const OpenBeside& beside,
                                            const TokenGiven& given);

}  // namespace lowtide

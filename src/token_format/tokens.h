// tokens.h - what a token file promises: its format, and where its tokens are.
//
// Pure: it reads bytes through callbacks and opens nothing. A format is one file in this room
// (token_source.h has its side of the contract) and one line in the list of tokens.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/registry.h"
#include "lowtide/dtype.h"
#include "token_format/token_records.h"

namespace lowtide {

// A file as a format sees it.
struct TokenFile {
  std::string path;
  std::uint64_t file_bytes = 0;
  ReadStart read;  // for bytes anywhere inside the file, up to 1 MiB at a time
};

// Opens a file beside the first one; nullopt if there is none. Its exceptions pass through. Called
// for each file whose name may have an index beside it, possibly twice.
using OpenBeside = std::function<std::optional<TokenFile>(const std::string& path)>;

// Contiguous tokens.
struct TokenExtent {
  std::uint64_t offset_bytes = 0;  // in the data file, at any alignment
  std::uint64_t tokens = 0;
  std::uint64_t first_sequence = 0;  // in the index, if there is one
};

// How an index says where documents are.
enum class DocumentsBy : std::uint8_t {
  sequences,     // Megatron's arrays
  token_ends,    // the token at which each document ends
  byte_offsets,  // the byte of the data file at which each document starts
  records,       // not in a file: TokenLayout::records
};

// Where the boundaries of documents are stored. By sequences, they are Megatron's arrays, which are
// not aligned. Document d consists of the sequences documents[d] up to documents[d + 1]; sequence s
// starts at byte pointers[s] of the data file.
//
// All of it was checked, so these hold:
// - documents[] goes from 0 to `sequences` and never decreases;
// - if there are extents, pointers[s] is in the last extent with first_sequence <= s, or at its
// end, a
//   whole number of tokens after its start.
// So the position of s in the stream is the number of tokens in the extents before, plus
// (pointers[s] - offset_bytes) / item size; for s == sequences it is the number of all tokens.
//
// By token ends, the index holds one uint64 per document, never decreasing; the last one is the
// number of all tokens.
//
// By byte offsets, it holds one uint32 per document and one for the end, never decreasing. They are
// in the one extent that the tokens have, or at its end, a whole number of tokens after its start.
struct DocumentIndex {
  std::string path;
  DocumentsBy by = DocumentsBy::sequences;
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;               // not counting the end mark
  std::uint64_t lengths_offset_bytes = 0;    // int32[sequences]
  std::uint64_t pointers_offset_bytes = 0;   // int64[sequences]
  std::uint64_t documents_offset_bytes = 0;  // int64[documents + 1]; or the ends, or the offsets
};

constexpr std::size_t kMostExtents = 65536;
constexpr std::uint64_t kMostTokens = std::uint64_t{1} << 60;

// Guarantees: dtype is a little-endian integer of 1, 2, 4 or 8 bytes; extents are inside the data
// file; tokens is their sum, below kMostTokens. If a header promises no tokens, there are no
// extents.
struct TokenLayout {
  std::string format;     // one of token_words()
  std::string data_path;  // where the extents are, even if the index beside it was named
  std::string key;        // the column that contains the tokens, if the format has several
  DType dtype;
  std::uint64_t tokens = 0;
  std::vector<TokenExtent> extents;  // in the order of the stream; at most kMostExtents, none empty
  // Instead of extents, if each document has a place of its own. Inside the data file as well.
  std::shared_ptr<const TokenRecords> records = nullptr;
  std::optional<DocumentIndex> documents;
  bool eot_begins = false;  // the token between documents begins one; otherwise it ends one
};

// What the caller says; nullopt means nothing was said.
struct TokenGiven {
  std::optional<DType> dtype;         // must agree with a header; decides if there is none
  std::optional<std::string> format;  // a word of a format, or its alias; the bytes must agree
  // The column that contains the tokens, for formats that have several.
  std::optional<std::string> key = std::nullopt;
  // The most that the records of a file may take.
  std::uint64_t most_record_bytes = 64 << 20;
  // Checks the header of every document, also where opening a file needs only a table of them.
  bool every_header = false;
};

// The layout of the file, recognised by its bytes. `file` may be the .idx or the .bin of a Megatron
// pair. A file without a header is "olmo" if its name ends in .npy and "nanogpt" otherwise; without
// a dtype its tokens are uint16. Throws FormatError, which names the path, what was expected and
// what was found, for:
// - an empty file, or a size that is not a multiple of the token size;
// - a type that is not a little-endian integer;
// - without a dtype: tokens without a header that look like uint32, and files of other tools
//   (foreign.h);
// - counts, pointers and sizes that contradict each other.
// Throws std::invalid_argument for an unknown format, with a list of the known ones, for a key if
// the format has no columns, and if the records need more memory than was given.
//
// Holds at most 512 KiB, the extents and the records (plus the header of a .npy, at most 1 MiB of
// text), whatever the counts claim. An index is read once, in slices.
[[nodiscard]] TokenLayout open_token_layout(const TokenFile& file, const OpenBeside& beside,
                                            const TokenGiven& given);

// Whether a file that could be an array as well is rather tokens: by its header, or, if it has
// none, by its name and the given dtype. Throws FormatError for an empty file.
[[nodiscard]] bool looks_like_tokens(const TokenFile& file, const OpenBeside& beside,
                                     const TokenGiven& given);

// The words of all token formats, without aliases.
[[nodiscard]] std::vector<std::string_view> token_words();
// How the names of its data files end. Throws std::invalid_argument for an unknown word.
[[nodiscard]] std::string_view token_suffix(std::string_view format);
// As in the layouts of this format. Throws std::invalid_argument for an unknown word.
[[nodiscard]] bool eot_begins(std::string_view format);

}  // namespace lowtide

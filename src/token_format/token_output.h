// token_output.h - the way back: the bytes that a token format has around its tokens, made from
// what was written. Pure: the caller opens, reads and writes.
//
// A data file is an optional header and the tokens. An index beside it is an optional header and
// columns, each with one entry per document. A header is known only at the end, so its room is left
// free until then. The first column is written while documents arrive. The others are made at the
// end, by reading the first one back in slices: nothing in memory grows with the documents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/token_type.h"
#include "token_format/token_source.h"

namespace lowtide {

struct TokenTotals {
  DType dtype;
  std::uint64_t tokens = 0;
  std::uint64_t documents = 0;
  // In a format whose documents consist of sequences. nullopt: one per document.
  std::optional<std::uint64_t> sequences = std::nullopt;
};

struct DocumentPlace {
  std::uint64_t number = 0;
  std::uint64_t first_token = 0;
  std::uint64_t tokens = 0;
  std::uint64_t item_bytes = 0;  // of one token
};

struct IndexColumn {
  std::uint64_t entry_bytes = 0;
  bool has_end = false;  // one more entry, for an empty document after the last one
  // One entry per document, with the number of its first sequence as its own; all other columns
  // have one per sequence. There is no difference unless documents have several.
  bool of_documents = false;
  void (*store)(const DocumentPlace& document, std::byte* entry) = nullptr;
};

struct IndexOutput {
  std::uint64_t header_bytes = 0;
  void (*store_header)(const TokenTotals& totals, std::span<std::byte> out) = nullptr;
  std::span<const IndexColumn> columns;
  // The length of the document that has this entry in the first column.
  std::uint64_t (*load_tokens)(const std::byte* entry, std::uint64_t first_token) = nullptr;
};

// A format's side of the contract: TokenFormat::output.
struct TokenOutput {
  std::span<const TokenType> types;  // that the format can store
  std::uint64_t most_tokens = kMostTokens - 1;
  std::uint64_t most_document_tokens = kMostTokens - 1;
  std::uint64_t header_bytes = 0;
  void (*store_header)(const TokenTotals& totals, std::span<std::byte> out) = nullptr;
  const IndexOutput* index = nullptr;
  bool needs_suffix = false;  // it is recognised by its name; always so if there is an index
};

inline constexpr std::array<TokenType, kTokenTypes> kAllTokenTypes{
    TokenType::u8,  TokenType::i8,  TokenType::u16, TokenType::i16,
    TokenType::u32, TokenType::i32, TokenType::u64, TokenType::i64};

// What a writer is about to make.
struct TokenTarget {
  std::string format;  // its word
  TokenType type = TokenType::u16;
  const TokenOutput* output = nullptr;  // never destroyed
  std::string data_path;
  std::string index_path;  // empty: there is none
  // An index of another format, which would make a reader take this file for that format. It must
  // not exist. Empty: there is none.
  std::string stray_index_path;

  [[nodiscard]] TokenTotals totals(std::uint64_t tokens, std::uint64_t documents) const;
};

// Throws std::invalid_argument for a format that is unknown or not written, for a type that it
// cannot store, and for a name under which it would not be found again.
[[nodiscard]] TokenTarget token_target(const std::string& path, std::string_view format,
                                       const DType& dtype);

// The words of the formats that can be written.
[[nodiscard]] std::vector<std::string_view> writable_token_words();

// The size of the whole index for this many documents.
[[nodiscard]] std::uint64_t index_bytes(const IndexOutput& index, std::uint64_t documents);

// Makes all columns after the first one, in file order. `read` gives bytes of the first column,
// counted from its start; `write` takes the bytes that follow it. Both are called with at most
// room.size() / 2 bytes, and room must hold two entries of every column. Their exceptions pass
// through. Throws FormatError if the lengths do not add up to the totals: somebody else wrote into
// the file.
void make_columns(const IndexOutput& index, const TokenTotals& totals, std::span<std::byte> room,
                  const ReadStart& read,
                  const std::function<void(std::span<const std::byte>)>& write);

}  // namespace lowtide

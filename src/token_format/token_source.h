// token_source.h - a token format's side of the contract: what it says about itself, what it gets,
// and the checks that all token formats share.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "token_format/tokens.h"

namespace lowtide {

constexpr std::size_t kTokenStartBytes = 12;  // enough for every format's magic

// Everything is borrowed for one call of a format.
struct TokenSource {
  const TokenFile& file;
  std::span<const std::byte> start;  // the first kTokenStartBytes, or all of a shorter file
  const OpenBeside& beside;
  const TokenGiven& given;
};

struct TokenOutput;    // token_output.h
struct TokenFileList;  // token_list.h

// What Lowtide knows about a format; nobody else knows its name. Each format defines one, as
// kFormat in a namespace of its own, and has one line in the list of tokens.cc.
struct TokenFormat {
  std::string_view word;               // in options, in messages and in Tokens::format()
  std::string_view alias = {};         // another word for it in options
  std::string_view suffix;             // of its data files: a folder is searched for it
  std::string_view index_suffix = {};  // of the index beside each data file, if there is one
  bool has_header = true;              // the first bytes tell; otherwise it accepts any bytes
  bool eot_begins = false;   // the token between documents begins one; otherwise it ends one
  bool has_columns = false;  // a key may name the one that contains the tokens
  // Whether the file has the header, or the name, of this format.
  bool (*matches)(const TokenSource& source);
  // Everything but the format's word and the total. Throws FormatError.
  TokenLayout (*open)(const TokenSource& source);
  const TokenOutput* output = nullptr;  // how it is written; nullptr: Lowtide does not write it
  // Of a format whose files are listed by an index.json: the key by which its lists are recognised,
  // and what reads one into everything but `path` and `format`. Throws FormatError without a path.
  std::string_view list_key = {};
  void (*read_list)(std::string_view json, TokenFileList* list) = nullptr;
};

// Every format, in the order in which they are asked.
[[nodiscard]] std::span<const TokenFormat* const> token_formats();

// Reads the first kTokenStartBytes of a file, or all of a shorter one, into `room`.
[[nodiscard]] std::span<const std::byte> read_token_start(
    const TokenFile& file, std::array<std::byte, kTokenStartBytes>* room);

[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The little-endian integer at `at`, which need not be aligned.
template <typename Integer>
[[nodiscard]] Integer load_little(const std::byte* at) {
  std::array<std::byte, sizeof(Integer)> bytes;
  std::memcpy(bytes.data(), at, sizeof(Integer));
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
  return std::bit_cast<Integer>(bytes);
}

// Stores an integer at `at` in the same way.
template <typename Integer>
void store_little(Integer value, std::byte* at) {
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(Integer)>>(value);
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(bytes);
  std::memcpy(at, bytes.data(), sizeof(Integer));
}

// Throws FormatError unless tokens can have this type: a little-endian or one-byte integer.
void check_token_dtype(const DType& dtype, const std::string& path);

// Throws FormatError if the caller gave a dtype that differs from the header's.
void check_given_dtype(const TokenGiven& given, const DType& header, const std::string& path);

// A layout of `tokens` tokens of `dtype` from `offset_bytes` on, in one extent, or none if there
// are no tokens.
[[nodiscard]] TokenLayout one_extent(const std::string& path, const DType& dtype,
                                     std::uint64_t offset_bytes, std::uint64_t tokens);

}  // namespace lowtide

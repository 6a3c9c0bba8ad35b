// token_list.h - an index.json that lists the data files of its folder, as MDS and LitData write
// it. Pure: the caller opens the files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "token_format/tokens.h"

namespace lowtide {

// What the list says about one file.
struct ListedFile {
  // Below the folder of the list, without "..": listed_name() has checked it.
  std::string name;
  std::string packed_name;  // of the compressed file that it is made from, if there is one
  std::string compression;  // as in the list; empty if there is none
  std::uint64_t file_bytes = 0;
  std::uint64_t documents = 0;
  std::optional<std::uint64_t> tokens;  // if the list says so
};

struct TokenFileList {
  std::string path;
  std::string format;             // of all files
  std::optional<DType> dtype;     // of all files, if the list says so
  std::vector<ListedFile> files;  // in the order of the stream
};

constexpr std::string_view kTokenListName = "index.json";
constexpr std::uint64_t kMaxTokenListBytes = 64 << 20;
constexpr std::size_t kMaxListedFiles = 1 << 20;

// Whether a path or an address has the name of a list.
[[nodiscard]] bool is_token_list(std::string_view path);

// Throws FormatError, which names the path, for a text that is not the list of a known format, for
// names outside of the folder, and if the caller gave another format or dtype. Holds the text of at
// most kMaxTokenListBytes, and then the list.
[[nodiscard]] TokenFileList read_token_list(const TokenFile& file, const TokenGiven& given);

// The same for the file's own options: what the list knows is given, too.
[[nodiscard]] TokenGiven given_by(const TokenFileList& list, const TokenGiven& given);

// Throw FormatError unless a file is what the list says; the first one before it is opened.
void check_listed_size(const TokenFileList& list, const ListedFile& listed, const TokenFile& file);
void check_listed(const TokenFileList& list, const ListedFile& listed, const TokenLayout& layout);

// Throws FormatError, which says how to unpack the file that exists only compressed.
[[noreturn]] void refuse_packed(const TokenFileList& list, const ListedFile& listed);

// For formats: throws FormatError unless the name is below the folder.
[[nodiscard]] std::string listed_name(std::string name);

}  // namespace lowtide

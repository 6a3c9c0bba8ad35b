// foreign.h - files of other tools that hold neither plain elements nor plain tokens: archives,
// compressed files, tables, pickles, text. Told by their first bytes, so that none of them is read
// as numbers by accident.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/registry.h"

namespace lowtide {

constexpr std::uint64_t kForeignStartBytes = 64 * 1024;  // of a file, or all of a shorter one

struct Foreign {
  std::string_view what;    // with its article: "a gzip file"
  std::string_view advice;  // what to do with it: "gunzip it first"
};

// What a file is that starts with `start` (its first kForeignStartBytes, or all of it) and has
// `file_bytes` in all; nullopt for anything else. For a match by chance at least 27 bits must be
// right (gzip: three bytes and three flags; of all others more). Pure.
[[nodiscard]] std::optional<Foreign> recognise_foreign(std::span<const std::byte> start,
                                                       std::uint64_t file_bytes);

// Throws FormatError that names the file for what it is and says what to do, if it is one of these.
// `expected` is what was asked for: "an array", "tokens". For callers that were given no dtype: a
// dtype is the user's word that the bytes are raw data.
void refuse_foreign(const std::string& path, std::uint64_t file_bytes, const ReadStart& read,
                    std::string_view expected);

}  // namespace lowtide

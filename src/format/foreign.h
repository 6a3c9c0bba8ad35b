// foreign.h - files of other tools that hold neither plain elements nor plain tokens: archives,
// compressed files, tables, pickles, text. They are recognised by their first bytes, so that none
// of them is read as numbers by accident.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/registry.h"

namespace lowtide {

constexpr std::uint64_t kForeignStartBytes = 64 * 1024;  // examined; less if the file is shorter

struct Foreign {
  std::string_view what;    // with its article: "a gzip file"
  std::string_view advice;  // what to do with it: "gunzip it first"
};

// What kind of file starts with `start` (its first kForeignStartBytes, or all of it) and has
// `file_bytes` in total; nullopt if it is not recognised. At least 27 bits must match (gzip: three
// bytes and three flags; all others more), so a match by chance is unlikely. Pure.
[[nodiscard]] std::optional<Foreign> recognise_foreign(std::span<const std::byte> start,
                                                       std::uint64_t file_bytes);

// If the file is one of these, throws FormatError, which says what it is and what to do. `expected`
// is what the caller wanted: "an array", "tokens". Call it only without a dtype: a dtype is the
// user's statement that the bytes are raw data.
void refuse_foreign(const std::string& path, std::uint64_t file_bytes, const ReadStart& read,
                    std::string_view expected);

// Throws FormatError if one of the names in a folder says that another tool wrote the folder.
void refuse_foreign_folder(const std::string& folder, const std::vector<std::string>& names);

}  // namespace lowtide

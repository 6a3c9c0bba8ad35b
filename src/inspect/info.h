// info.h - opens a file as what it is, for the code that inspects it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lowtide/array.h"
#include "lowtide/info.h"
#include "lowtide/tokens.h"

namespace lowtide {

using OpenedFile = std::variant<Array, Tokens>;

// For files through which nothing is read: a row longer than the budget is not an error.
inline const ReadOptions kNoReads{.memory_bytes = std::uint64_t{1} << 62,
                                  .engine = EngineKind::pread};

// Follows the rules of InfoOptions::kind. With `expand` there is one path: a file, a pattern, a
// folder or a prefix. Throws IoError, FormatError (an empty file), std::invalid_argument.
[[nodiscard]] FileKind kind_of(std::span<const std::string> paths, bool expand,
                               const InfoOptions& options);

// As an array or as tokens. Throws what Array::open and Tokens::open throw.
[[nodiscard]] OpenedFile open_file(std::span<const std::string> paths, bool expand,
                                   const InfoOptions& options, const ReadOptions& read);

[[nodiscard]] Info info_of_opened(const OpenedFile& opened, const std::string& path,
                                  const InfoOptions& options);

// Of a file that contains several arrays, of which the options choose none; nullopt for any other
// file. Throws as open_file.
[[nodiscard]] std::optional<Info> info_of_several(std::span<const std::string> paths, bool expand,
                                                  const InfoOptions& options);

// Of an array or a group that is a folder of chunks; nullopt for anything else. Throws IoError,
// FormatError.
[[nodiscard]] std::optional<Info> info_of_chunks(std::span<const std::string> paths,
                                                 const InfoOptions& options);

// Whether the path is a folder with a sparse matrix, and the options do not call it something else.
[[nodiscard]] bool is_sparse_folder(std::span<const std::string> paths, const InfoOptions& options);
// What the header of such a folder records; nullopt for anything else. Throws IoError, FormatError.
[[nodiscard]] std::optional<Info> info_of_sparse(std::span<const std::string> paths,
                                                 const InfoOptions& options);

// Adds files and what of them is in the page cache, then the sum of the latter.
void add_files(Info* found, const std::vector<std::string>& paths);
void sum_cached(Info* found);

// NumPy's name if it has one ("float32"), otherwise its descr without quotes.
[[nodiscard]] std::string dtype_name(const DType& dtype);

}  // namespace lowtide

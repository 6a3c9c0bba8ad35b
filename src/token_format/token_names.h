// token_names.h - which files of a list or a folder hold tokens, judged by their names alone. Pure:
// the caller knows which names exist.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lowtide {

// The token files among all names in a folder, as paths, in the order of `names`; only the
// index.json that lists them, if there is one. Throws FormatError if there are none, and if their
// suffixes differ.
[[nodiscard]] std::vector<std::string> token_files_in(const std::string& folder,
                                                      const std::vector<std::string>& names);

// Without each index whose data file is in the list too, and without an index.json beside other
// files of the list: a pattern often matches both.
[[nodiscard]] std::vector<std::string> without_indexes(const std::vector<std::string>& paths);

// The paths that the common prefix of a data file and its index may stand for.
[[nodiscard]] std::vector<std::string> paths_of_prefix(const std::string& prefix);

// The index that belongs beside a data file of this name, if any format has one.
[[nodiscard]] std::optional<std::string> index_beside(const std::string& path);

}  // namespace lowtide

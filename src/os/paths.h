// paths.h - turns what a user wrote into the names of files.
#pragma once

#include <string>
#include <vector>

namespace lowtide {

// An existing path stands for itself, whatever characters it contains. Otherwise a text with *, ?
// or [ is a pattern and gives its matches, sorted by bytes. Throws IoError(ENOENT) if nothing
// matches, and for any other path that does not exist.
[[nodiscard]] std::vector<std::string> expand_path(const std::string& path);

// Absolute, so that it still names the same file after the process changes its folder.
[[nodiscard]] std::string whole_path(const std::string& path);
[[nodiscard]] bool path_exists(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path);
// The names in a folder, sorted by bytes, without "." and "..". Throws IoError.
[[nodiscard]] std::vector<std::string> list_folder(const std::string& path);

}  // namespace lowtide

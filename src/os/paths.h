// paths.h - from what a user wrote to the names of files.
#pragma once

#include <string>
#include <vector>

namespace lowtide {

// A path that exists is itself, whatever characters it has. Else a text with *, ? or [ is a
// pattern: its matches sorted by bytes. No match, and anything else that is not there:
// IoError(ENOENT).
[[nodiscard]] std::vector<std::string> expand_path(const std::string& path);

// From the root on, so that it names the same file whichever folder the process goes to.
[[nodiscard]] std::string whole_path(const std::string& path);
[[nodiscard]] bool path_exists(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path);
// The names in a folder, sorted by bytes, without "." and "..". Throws IoError.
[[nodiscard]] std::vector<std::string> list_folder(const std::string& path);

}  // namespace lowtide

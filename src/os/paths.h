// paths.h - from what a user wrote to the names of files.
#pragma once

#include <string>
#include <vector>

namespace lowtide {

// A path that exists is itself, whatever characters it has. Else a text with *, ? or [ is a
// pattern: its matches sorted by bytes. No match, and anything else that is not there:
// IoError(ENOENT).
[[nodiscard]] std::vector<std::string> expand_path(const std::string& path);

}  // namespace lowtide

// whole_file.h - a file that is there whole or not at all.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// Writes `bytes` beside `path` and renames: a reader sees the file that was there before, or this
// one. What is no regular file (/dev/stdout, a pipe) is written to as it is. After an error
// (IoError: no such folder, no permission, no space) nothing is left behind.
void write_whole(const std::string& path, std::string_view bytes);

}  // namespace lowtide

// whole_file.h - writes a file completely or not at all.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// Writes `bytes` beside `path` and renames, so that a reader sees either the previous file or this
// one. If `path` is not a regular file (/dev/stdout, a pipe), it is written to directly. After an
// error (IoError: no such folder, no permission, no space) nothing is left behind.
void write_whole(const std::string& path, std::string_view bytes);

}  // namespace lowtide

// output_file.h - files that we write: one that grows line by line, and one that appears whole.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// A file that only grows, readable by others up to its last write. Owns its descriptor. Nothing is
// buffered: every write is in the kernel at once, and neither a fork nor a kill can lose it.
class AppendFile {
 public:
  // Truncates an existing file. Throws IoError.
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Returns 0 or an errno (ENOSPC, EIO, ...); after an error, a part may have been written.
  [[nodiscard]] int append(std::string_view bytes) noexcept;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

// Writes `bytes` beside `path` and renames, so that a reader sees either the previous file or this
// one. If `path` is not a regular file (/dev/stdout, a pipe), it is written to directly. After an
// error (IoError: no such folder, no permission, no space) nothing is left behind.
void write_whole(const std::string& path, std::string_view bytes);

}  // namespace lowtide

// append_file.h - a file that only grows, readable by others up to its last write.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// Owns its descriptor. Nothing is buffered: every write is in the kernel at once, and neither a
// fork nor a kill can lose it.
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

}  // namespace lowtide

// append_file.h - a file that only grows, readable by others up to its last write.
#pragma once

#include <string>
#include <string_view>

namespace lowtide {

// Owns its descriptor. Nothing is kept back: what was written is in the kernel, and a fork or a
// kill changes nothing about it.
class AppendFile {
 public:
  // Begins anew what was there. Throws IoError.
  explicit AppendFile(std::string path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Returns 0 or an errno (ENOSPC, EIO, ...); then a part may have been written.
  [[nodiscard]] int append(std::string_view bytes) noexcept;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace lowtide

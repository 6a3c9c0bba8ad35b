// shared_memory.h - zeroed memory that another program of the same user can map by a path.
#pragma once

#include <cstddef>
#include <string>

namespace lowtide {

// A memfd: needs no folder that can be written, and is gone with the last process that maps it.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t size_bytes);  // throws IoError
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  // Can be opened by others for as long as this lives.
  [[nodiscard]] std::string path() const;

 private:
  int fd_ = -1;
  std::size_t size_bytes_;
  void* data_ = nullptr;
};

// Holds a file open so that "/proc/PID/fd/N" names it, without the characters of its own path.
class OpenName {
 public:
  explicit OpenName(const std::string& path);  // throws IoError
  ~OpenName();
  OpenName(const OpenName&) = delete;
  OpenName& operator=(const OpenName&) = delete;
  [[nodiscard]] std::string path() const;

 private:
  int fd_ = -1;
};

}  // namespace lowtide

// shared_memory.h - zeroed memory that another program of the same user can map by a path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace lowtide {

// A memfd: needs no writable folder, and disappears with the last process that maps it. Its size is
// sealed, so it cannot shrink under a map.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t size_bytes);  // throws IoError
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] void* data() const { return data_; }
  // Others can open it while this object lives. Later it may name a file of another process with
  // the same id, so check what you opened.
  [[nodiscard]] std::string path() const;

 private:
  int fd_ = -1;
  std::size_t size_bytes_;
  void* data_ = nullptr;
};

// Random, from the kernel; never 0.
[[nodiscard]] std::uint64_t random_number();  // throws IoError

}  // namespace lowtide

// mapping.h - a whole file mapped for reading, as the demo shows it and no engine does it.
#pragma once

#include <cstddef>
#include <span>

namespace lowtide {

class File;

// Shared and read-only, without advice. Touched pages count as resident until they are released. A
// file that shrinks while mapped kills the process (SIGBUS), so use it only for your own files.
class Mapping {
 public:
  // Throws IoError; FormatError for an empty file.
  explicit Mapping(const File& file);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }

  // MADV_DONTNEED: the pages leave the process but stay in the page cache. Throws IoError.
  void let_go() const;

 private:
  const File& file_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace lowtide

// mapping.h - a whole file mapped for reading: what the demo shows, and what no engine does.
#pragma once

#include <cstddef>
#include <span>

namespace lowtide {

class File;

// Shared and read-only, without advice. Pages that were touched count as resident until they are
// let go of. A file that shrinks while mapped kills the process (SIGBUS): for files of one's own.
class Mapping {
 public:
  // Throws IoError; FormatError for an empty file.
  explicit Mapping(const File& file);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }

  // MADV_DONTNEED: the pages leave the process; in the page cache they stay. Throws IoError.
  void let_go() const;

 private:
  const File& file_;
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace lowtide

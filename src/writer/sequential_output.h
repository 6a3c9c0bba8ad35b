// sequential_output.h - bytes that are written to a file one after the other, in large blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "os/write_file.h"
#include "writer/published_file.h"

namespace lowtide {

// Every byte has the same address modulo the size of a block in the buffer as in the file, so that
// whole blocks can bypass the page cache. Borrows the file and the buffer. One thread at a time.
class SequentialOutput {
 public:
  // The buffer's address and size are multiples of WriteFile::kBlockBytes.
  SequentialOutput(PublishedFile& file, std::span<std::byte> buffer)
      : file_(file), buffer_(buffer) {}

  // Where the next byte goes.
  [[nodiscard]] std::uint64_t offset_bytes() const { return start_bytes_ + end_; }
  // Free room behind what was added, at least one byte. Writes a full buffer to the file first.
  [[nodiscard]] std::span<std::byte> room();
  // So many bytes of the room were filled.
  void filled(std::size_t bytes) { end_ += bytes; }
  void append(std::span<const std::byte> bytes);
  // Leaves room for a header that is written later, straight to the file.
  void append_zeros(std::uint64_t count);
  // Everything added so far is in the file.
  void flush();

 private:
  PublishedFile& file_;
  const std::span<std::byte> buffer_;
  std::uint64_t start_bytes_ = 0;  // where the buffer begins in the file: a multiple of the block
  std::size_t begin_ = 0;          // what the buffer holds: [begin_, end_)
  std::size_t end_ = 0;
};

}  // namespace lowtide

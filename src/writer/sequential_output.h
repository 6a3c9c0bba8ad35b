// sequential_output.h - bytes that are written to a file one after the other, in large blocks.
//
// The buffer has two halves: while a WriteThread writes one of them, the other one is filled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "os/write_file.h"
#include "writer/published_file.h"
#include "writer/write_thread.h"

namespace lowtide {

// Every byte has the same address modulo the size of a block in the buffer as in the file, so that
// whole blocks can bypass the page cache. Borrows the file and the buffer. One thread at a time. An
// error of the disk is thrown by a later call, at the latest by flush().
class SequentialOutput {
 public:
  // The buffer's address and size are multiples of WriteFile::kBlockBytes.
  SequentialOutput(PublishedFile& file, std::span<std::byte> buffer);

  // Where the next byte goes.
  [[nodiscard]] std::uint64_t offset_bytes() const { return start_bytes_ + end_; }
  // Free room behind what was added, at least one byte. Full, it is written to the file.
  [[nodiscard]] std::span<std::byte> room() {
    if (end_ == half_.size()) pass_on();
    return half_.subspan(end_);
  }
  // So many bytes of the room were filled.
  void filled(std::size_t bytes) { end_ += bytes; }
  void append(std::span<const std::byte> bytes);
  // Leaves room for a header that is written later, straight to the file.
  void append_zeros(std::uint64_t count);
  // Everything added so far is in the file, and nobody uses the buffer.
  void flush();

 private:
  void pass_on();
  void write_now();

  PublishedFile& file_;
  std::span<std::byte> half_;      // that is filled
  std::span<std::byte> other_;     // that may be on its way; empty if the buffer is one block
  std::uint64_t start_bytes_ = 0;  // where the half begins in the file: a multiple of the block
  std::size_t begin_ = 0;          // what the half holds: [begin_, end_)
  std::size_t end_ = 0;
  WriteThread thread_;  // the last one, because it uses the others
};

}  // namespace lowtide

// scatter.h - small pieces that lie far apart wait here until many can be written in file order.
//
// A piece changes parts of pages, which the disk must read first. Written one by one, each waits
// for its own read. Here as many as there is memory for are sorted, the pages of the next hundreds
// are read while the first are changed, and neighbours share a page.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/budget.h"
#include "core/mutex.h"
#include "os/memory.h"
#include "writer/published_file.h"

namespace lowtide {

// Any thread. A piece that was added later wins over an earlier one.
class Scatter {
 public:
  // Pieces of this size and more are not worth it.
  static constexpr std::uint64_t kLargeBytes = 64 << 10;

  // Takes half of the budget, or what is free of it, when the first piece comes. File and budget
  // must outlive it.
  Scatter(PublishedFile& file, Budget& budget) : file_(file), budget_(budget) {}

  // False if there is no memory for it: the caller writes the piece. Throws the IoError of pieces
  // that had to be written to make room.
  [[nodiscard]] bool add(std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  // Call before newer bytes of this range are written: pieces that overlap it go first.
  void make_way(std::uint64_t first_bytes, std::uint64_t end_bytes);
  // Everything is with the file.
  void flush();

  [[nodiscard]] std::uint64_t bytes_written() const { return bytes_written_; }
  [[nodiscard]] std::uint64_t writes() const { return writes_; }

 private:
  struct Piece {
    std::uint64_t offset_bytes;
    std::uint32_t at;  // in the memory: pieces that came later have more
    std::uint32_t size_bytes;

    [[nodiscard]] std::uint64_t end_bytes() const { return offset_bytes + size_bytes; }
  };
  void claim() LOWTIDE_REQUIRES(mutex_);
  [[nodiscard]] std::span<Piece> pieces() LOWTIDE_REQUIRES(mutex_);
  void write_all() LOWTIDE_REQUIRES(mutex_);

  PublishedFile& file_;
  Budget& budget_;
  std::atomic<std::uint64_t> bytes_written_ = 0, writes_ = 0;
  std::atomic<bool> empty_ = true;
  Mutex mutex_;
  bool asked_ LOWTIDE_GUARDED_BY(mutex_) = false;
  Claim claim_ LOWTIDE_GUARDED_BY(mutex_);
  // Bytes from the front, pieces from the back.
  Memory memory_ LOWTIDE_GUARDED_BY(mutex_);
  std::uint64_t used_bytes_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::size_t count_ LOWTIDE_GUARDED_BY(mutex_) = 0;
};

}  // namespace lowtide

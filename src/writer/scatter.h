// scatter.h - small pieces that lie far apart wait here until many can be written in file order.
//
// A piece changes parts of pages, which the disk must read first. Written one by one, each waits
// for its own read and write. Here as many as there is memory for are sorted. Pieces that are near
// each other become one span, which is read, changed and written as a whole; the pages of the
// others are read ahead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "core/budget.h"
#include "core/mutex.h"
#include "os/memory.h"
#include "writer/published_file.h"

namespace lowtide {

// Any thread. A piece that was added later wins over an earlier one. All other writes to the file
// go through write(), because a span must not be rewritten while somebody changes it.
class Scatter {
 public:
  // Pieces of this size and more are not worth it.
  static constexpr std::uint64_t kLargeBytes = 64 << 10;

  // Takes half of the budget, or what is free of it, when the first piece comes. File and budget
  // must outlive it.
  Scatter(PublishedFile& file, Budget& budget) : file_(file), budget_(budget) {}

  // Only whole blocks inside this range may be rewritten: other processes write the others.
  void own_range(std::uint64_t first_bytes, std::uint64_t end_bytes);

  // False if there is no memory for it: the caller writes the piece. Throws the IoError of pieces
  // that had to be written to make room.
  [[nodiscard]] bool add(std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  // Writes bytes that are newer than all pieces, at once. Throws as PublishedFile::write().
  void write(std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  // All pieces are with the file.
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
  struct Span {  // of the file, in whole blocks, and its pieces
    std::uint64_t first_bytes;
    std::uint64_t end_bytes;
    std::span<Piece> pieces;
    bool rewritten;  // as a whole
    bool covered;    // by its pieces, so that it need not be read
  };
  class Alone;
  void claim() LOWTIDE_REQUIRES(mutex_);
  [[nodiscard]] std::span<Piece> pieces() LOWTIDE_REQUIRES(mutex_);
  [[nodiscard]] Span span_at(std::span<Piece> sorted) const LOWTIDE_REQUIRES(mutex_);
  void write_all() LOWTIDE_REQUIRES(mutex_);
  void write_span(const Span& span) LOWTIDE_REQUIRES(mutex_);
  void put(std::uint64_t offset_bytes, std::span<const std::byte> bytes);

  PublishedFile& file_;
  Budget& budget_;
  std::atomic<std::uint64_t> bytes_written_ = 0, writes_ = 0;
  Mutex mutex_;
  CondVar changed_;
  int writing_ LOWTIDE_GUARDED_BY(mutex_) = 0;        // calls of write() that are with the file
  bool flushing_ LOWTIDE_GUARDED_BY(mutex_) = false;  // others wait
  std::uint64_t own_first_bytes_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::uint64_t own_end_bytes_ LOWTIDE_GUARDED_BY(mutex_) =
      std::numeric_limits<std::uint64_t>::max();
  bool asked_ LOWTIDE_GUARDED_BY(mutex_) = false;
  Claim claim_ LOWTIDE_GUARDED_BY(mutex_);
  // A span from the front, then bytes of pieces; the pieces from the back.
  Memory memory_ LOWTIDE_GUARDED_BY(mutex_);
  std::uint64_t span_bytes_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::uint64_t used_bytes_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::size_t count_ LOWTIDE_GUARDED_BY(mutex_) = 0;
};

}  // namespace lowtide

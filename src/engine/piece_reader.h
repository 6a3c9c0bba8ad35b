// piece_reader.h - reads a piece of a set from the page cache on the calling thread.
//
// If there are only few files and a ring is available, many short reads share one system call.
// Every other read is a pread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "engine/lane.h"
#include "os/ring.h"

namespace lowtide {

// Made and used by one thread.
class PieceReader {
 public:
  static constexpr std::size_t kMostReads = 64;

  // `ring`: whether a ring may be made when the first piece is worth it.
  PieceReader(ShardOpener opener, bool ring)
      : opener_(std::move(opener)), may_ring_(ring && opener_.keeps()) {}

  // Takes at most kMostReads. Outcome::read is an index into `reads`.
  [[nodiscard]] Outcome read(std::span<const Read> reads) noexcept;

  [[nodiscard]] ShardOpener& opener() { return opener_; }

 private:
  [[nodiscard]] bool have_ring() noexcept;
  void make_ring();
  [[nodiscard]] int fd_of(std::uint32_t shard) noexcept;
  void read_together(std::span<const Read> reads) noexcept;

  ShardOpener opener_;
  bool may_ring_;
  std::unique_ptr<Ring> ring_;  // holds a descriptor of opener_, so it is destroyed first
  int held_fd_ = -1;            // that descriptor
  std::array<std::uint32_t, kMostReads> placed_bytes_{};  // what the ring placed, for each read
};

}  // namespace lowtide

// piece_reader.h - a piece of a set that is in the page cache, read by the thread that asks.
//
// Of the one file of an array, many short reads are one system call where a ring can be had; all
// others are a pread each.
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

// Used by one thread, on which it is made.
class PieceReader {
 public:
  static constexpr std::size_t kMostReads = 64;

  // `ring`: whether one may be made, with the first piece that is worth it.
  PieceReader(ShardOpener opener, bool ring)
      : opener_(std::move(opener)), may_ring_(ring && opener_.keeps()) {}

  // Outcome::read counts from the first of these, at most kMostReads.
  [[nodiscard]] Outcome read(std::span<const Read> reads) noexcept;

  [[nodiscard]] ShardOpener& opener() { return opener_; }

 private:
  [[nodiscard]] bool have_ring() noexcept;
  void make_ring();
  void read_together(std::span<const Read> reads) noexcept;

  ShardOpener opener_;
  bool may_ring_;
  std::unique_ptr<Ring> ring_;  // holds the descriptor that opener_ keeps, so it goes first
  int fd_ = -1;                 // that one
  std::array<std::uint32_t, kMostReads> placed_bytes_{};  // of each read, by the ring
};

}  // namespace lowtide

// piece_reader.h - a piece of a set that is in the page cache, read by the thread that asks.
//
// Where a ring can be had, many short reads are one system call; else each is a pread.
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
  PieceReader(ShardOpener opener, bool ring) : opener_(std::move(opener)), may_ring_(ring) {}

  // Outcome::read counts from the first of these, at most kMostReads.
  [[nodiscard]] Outcome read(std::span<const Read> reads) noexcept;
  // As ShardOpener::forget.
  void forget() noexcept;

  [[nodiscard]] ShardOpener& opener() { return opener_; }

 private:
  [[nodiscard]] bool worth_a_ring(std::span<const Read> run) noexcept;
  [[nodiscard]] bool make_ring() noexcept;
  void read_together(const OpenShard& shard, std::span<const Read> run) noexcept;

  ShardOpener opener_;
  bool may_ring_;
  std::shared_ptr<File> held_;  // by the ring: its descriptor must not become another file's
  std::unique_ptr<Ring> ring_;
  std::array<std::uint32_t, kMostReads> placed_bytes_;  // of each read of a run, by the ring
};

}  // namespace lowtide

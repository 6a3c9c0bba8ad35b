#include "engine/piece_reader.h"

#include <algorithm>
#include <exception>

namespace lowtide {
namespace {

constexpr std::size_t kLeastTogether = 8;  // for fewer reads a ring gains nothing
// In longer reads copying outweighs the system call that a ring saves.
constexpr std::uint32_t kShortReadBytes = 16 * 1024;

bool worth_a_ring(std::span<const Read> reads) {
  return reads.size() >= kLeastTogether && std::ranges::all_of(reads, [](const Read& read) {
           return read.from.size_bytes <= kShortReadBytes;
         });
}

}  // namespace

Outcome PieceReader::read(std::span<const Read> reads) noexcept {
  placed_bytes_.fill(0);
  if (may_ring_ && worth_a_ring(reads) && have_ring()) read_together(reads);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const Extent& from = reads[i].from;
    const std::uint32_t have = placed_bytes_[i];
    if (have == from.size_bytes) continue;
    Outcome outcome;
    outcome.read = static_cast<std::uint32_t>(i);
    const OpenShard* shard = nullptr;
    if ((outcome.err = opener_.open(from.shard, &shard)) != 0) return outcome;
    // Reads everything, or what the ring left out; pread then reports why the ring failed.
    const ReadResult result =
        shard->file->read(from.offset_bytes + have, {reads[i].into + have, from.size_bytes - have});
    if (have + result.placed_bytes == from.size_bytes) continue;
    outcome.err = result.err;
    outcome.ended = result.err == 0;
    outcome.found_bytes = end_of(*shard->file, from.offset_bytes + have + result.placed_bytes);
    return outcome;
  }
  return {};
}

// Tries only once, because pread does the same work.
bool PieceReader::have_ring() noexcept {
  if (ring_) return true;
  try {
    make_ring();
  } catch (const std::exception&) {  // no ring: not an error
  }
  may_ring_ = ring_ != nullptr;
  return may_ring_;
}

void PieceReader::make_ring() {
  auto ring = std::make_unique<Ring>(kMostReads);
  // Before Linux 5.12 rings count as locked memory, and a ring per thread would exhaust it.
  if (ring->uncounted()) ring_ = std::move(ring);
}

// The descriptor of a shard that a ring may read from, or -1. On a file system without non-blocking
// reads, io_uring hands each read to another thread, which is three times slower.
int PieceReader::fd_of(std::uint32_t shard) noexcept {
  const OpenShard* opened = nullptr;
  return opener_.open(shard, &opened) == 0 && opened->at_once ? opened->fd : -1;
}

// The caller reads again whatever did not arrive or arrived only in part.
void PieceReader::read_together(std::span<const Read> reads) noexcept {
  int fd = -1;
  for (std::size_t i = 0; i < reads.size(); ++i) {
    const Extent& from = reads[i].from;
    if (i == 0 || from.shard != reads[i - 1].from.shard) fd = fd_of(from.shard);
    if (i == 0 && fd >= 0 && fd != held_fd_) ring_->hold(held_fd_ = fd);
    if (fd >= 0 && !ring_->read(fd, from.offset_bytes, reads[i].into, from.size_bytes, i)) break;
  }
  while (ring_->in_flight() > 0) {
    if (ring_->submit(ring_->in_flight()) != 0) {
      ring_.reset();  // waits for the reads that the kernel has started
      may_ring_ = false;
      return;
    }
    std::array<Ring::Done, kMostReads> done;
    const std::size_t count = ring_->reap(done.data(), done.size());
    for (std::size_t i = 0; i < count; ++i) {
      placed_bytes_[done[i].tag] = static_cast<std::uint32_t>(std::max(done[i].result, 0));
    }
  }
}

}  // namespace lowtide

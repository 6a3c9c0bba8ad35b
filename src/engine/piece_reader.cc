#include "engine/piece_reader.h"

#include <algorithm>
#include <exception>

namespace lowtide {
namespace {

constexpr std::size_t kLeastTogether = 8;             // fewer are not worth a change of the file
constexpr std::uint32_t kShortReadBytes = 16 * 1024;  // longer ones are all copying

// The reads from the first one on that are of the same shard.
std::span<const Read> run_of(std::span<const Read> reads) {
  const std::uint32_t shard = reads.front().from.shard;
  const auto end = std::find_if(reads.begin(), reads.end(),
                                [&](const Read& read) { return read.from.shard != shard; });
  return reads.first(static_cast<std::size_t>(end - reads.begin()));
}

}  // namespace

Outcome PieceReader::read(std::span<const Read> reads) noexcept {
  Outcome outcome;
  while (outcome.read < reads.size()) {
    const std::span<const Read> run = run_of(reads.subspan(outcome.read));
    const OpenShard* shard = nullptr;
    if ((outcome.err = opener_.open(run.front().from.shard, &shard)) != 0) return outcome;
    placed_bytes_.fill(0);
    if (worth_a_ring(run)) read_together(*shard, run);
    for (std::size_t i = 0; i < run.size(); ++i, ++outcome.read) {
      const Extent& from = run[i].from;
      const std::uint32_t have = placed_bytes_[i];
      if (have == from.size_bytes) continue;
      // All of it, or the rest of a read that was cut short or failed, which tells why.
      const ReadResult result =
          shard->file->read(from.offset_bytes + have, {run[i].into + have, from.size_bytes - have});
      if (have + result.placed_bytes == from.size_bytes) continue;
      outcome.err = result.err;
      outcome.ended = result.err == 0;
      outcome.found_bytes = end_of(*shard->file, from.offset_bytes + have + result.placed_bytes);
      return outcome;
    }
  }
  return {};
}

void PieceReader::forget() noexcept {
  opener_.forget();
  if (opener_.keeps() || held_ == nullptr) return;
  if (ring_) ring_->hold(-1);
  held_.reset();
}

bool PieceReader::worth_a_ring(std::span<const Read> run) noexcept {
  return may_ring_ && run.size() >= kLeastTogether &&
         run.front().from.size_bytes <= kShortReadBytes && (ring_ || make_ring());
}

bool PieceReader::make_ring() noexcept try {
  ring_ = std::make_unique<Ring>(kMostReads);
  return true;
} catch (const std::exception&) {
  may_ring_ = false;  // preads do the same work
  return false;
}

// What does not come, or not whole, is for the caller to read again.
void PieceReader::read_together(const OpenShard& shard, std::span<const Read> run) noexcept {
  if (held_ != shard.file) {
    ring_->hold(shard.fd);
    held_ = shard.file;
  }
  for (std::size_t i = 0; i < run.size(); ++i) {
    const Extent& from = run[i].from;
    if (!ring_->read(shard.fd, from.offset_bytes, run[i].into, from.size_bytes, i)) break;
  }
  while (ring_->in_flight() > 0) {
    if (ring_->submit(ring_->in_flight()) != 0) {
      ring_.reset();  // waits for what the kernel has already
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

#include "writer/scatter.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kLeastScatterBytes = 64 << 10;
constexpr std::uint64_t kMostScatterBytes = 1ULL << 30;  // a piece counts in 32 bits
constexpr std::uint64_t kMostSpanBytes = 4 << 20;
// A gap up to this size is read and written as well: one long transfer takes less time than two
// short ones.
constexpr std::uint64_t kGapBytes = 64 << 10;
constexpr std::size_t kPiecesAhead = 512;  // of those that are written alone: pages being read

}  // namespace

// Waits until nobody writes, and keeps others out.
class Scatter::Alone {
 public:
  explicit Alone(Scatter& scatter) LOWTIDE_REQUIRES(scatter.mutex_) : scatter_(scatter) {
    scatter.flushing_ = true;
    while (scatter.writing_ > 0) scatter.changed_.wait(scatter.mutex_);
  }
  ~Alone() LOWTIDE_UNCHECKED {  // the lock is held
    scatter_.flushing_ = false;
    scatter_.changed_.notify_all();
  }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;

 private:
  Scatter& scatter_;
};

void Scatter::own_range(std::uint64_t first_bytes, std::uint64_t end_bytes) {
  const MutexLock lock(mutex_);
  own_first_bytes_ = round_up(first_bytes, WriteFile::kBlockBytes);
  own_end_bytes_ = round_down(end_bytes, WriteFile::kBlockBytes);
}

void Scatter::claim() {
  asked_ = true;
  const std::uint64_t bytes =
      round_down(std::min({budget_.limit_bytes() / 2, budget_.free_bytes(), kMostScatterBytes}),
                 WriteFile::kBlockBytes);
  if (bytes < kLeastScatterBytes) return;
  claim_ = budget_.claim(bytes, "scattered rows");
  memory_ = Memory(bytes, /*prefault=*/false, "scattered rows");
  span_bytes_ = round_down(std::min(bytes / 8, kMostSpanBytes), WriteFile::kBlockBytes);
  used_bytes_ = span_bytes_;
}

std::span<Scatter::Piece> Scatter::pieces() {
  return {reinterpret_cast<Piece*>(memory_.data() + memory_.size()) - count_, count_};
}

bool Scatter::add(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  const MutexLock lock(mutex_);
  while (flushing_) changed_.wait(mutex_);
  if (!asked_) claim();
  const std::uint64_t needed = bytes.size() + sizeof(Piece);
  if (needed > memory_.size() - span_bytes_) return false;
  if (needed > memory_.size() - used_bytes_ - count_ * sizeof(Piece)) write_all();
  std::memcpy(memory_.data() + used_bytes_, bytes.data(), bytes.size());
  ++count_;
  pieces().front() = {.offset_bytes = offset_bytes,
                      .at = static_cast<std::uint32_t>(used_bytes_),
                      .size_bytes = static_cast<std::uint32_t>(bytes.size())};
  used_bytes_ += bytes.size();
  return true;
}

void Scatter::put(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  file_.write(offset_bytes, bytes);
  bytes_written_ += bytes.size();
  ++writes_;
}

void Scatter::write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  MutexLock lock(mutex_);
  while (flushing_) changed_.wait(mutex_);
  const std::uint64_t end = offset_bytes + bytes.size();
  const std::span<const Piece> all = pieces();
  if (std::ranges::any_of(all, [&](const Piece& piece) {
        return piece.offset_bytes < end && offset_bytes < piece.end_bytes();
      })) {
    write_all();
  }
  ++writing_;
  lock.unlock();
  try {
    put(offset_bytes, bytes);
  } catch (...) {
    lock.lock();
    --writing_;
    changed_.notify_all();
    throw;
  }
  lock.lock();
  --writing_;
  changed_.notify_all();
}

void Scatter::flush() {
  const MutexLock lock(mutex_);
  while (flushing_) changed_.wait(mutex_);
  if (count_ > 0) write_all();
}

// The span that begins with the first piece.
Scatter::Span Scatter::span_at(std::span<Piece> sorted) const {
  constexpr std::uint64_t kBlock = WriteFile::kBlockBytes;
  Span span{.first_bytes = round_down(sorted[0].offset_bytes, kBlock),
            .end_bytes = round_up(sorted[0].end_bytes(), kBlock),
            .pieces = {},
            .rewritten = false,
            .covered = sorted[0].offset_bytes % kBlock == 0};
  std::uint64_t reach = sorted[0].end_bytes();
  std::size_t count = 1;
  for (; count < sorted.size(); ++count) {
    const Piece& next = sorted[count];
    const std::uint64_t end = std::max(span.end_bytes, round_up(next.end_bytes(), kBlock));
    const bool overlaps = next.offset_bytes < reach;  // so their order counts
    const bool near = round_down(next.offset_bytes, kBlock) <= span.end_bytes + kGapBytes &&
                      end - span.first_bytes <= span_bytes_;
    if (!overlaps && !near) break;
    span.covered = span.covered && next.offset_bytes <= reach;
    span.end_bytes = end;
    reach = std::max(reach, next.end_bytes());
  }
  span.pieces = sorted.first(count);
  span.covered = span.covered && reach == span.end_bytes;
  span.rewritten = count > 1 && span.end_bytes - span.first_bytes <= span_bytes_ &&
                   span.first_bytes >= own_first_bytes_ && span.end_bytes <= own_end_bytes_;
  return span;
}

void Scatter::write_all() {
  const Alone alone(*this);
  const std::span<Piece> all = pieces();
  std::ranges::sort(all, {}, &Piece::offset_bytes);
  std::size_t ahead = 0;    // pieces that were looked at
  std::size_t waiting = 0;  // of them, those to be written alone
  for (std::size_t first = 0; first < all.size();) {
    while (ahead < all.size() && (ahead == first || waiting < kPiecesAhead)) {
      const Span next = span_at(all.subspan(ahead));
      ahead += next.pieces.size();
      if (next.rewritten) continue;
      waiting += next.pieces.size();
      for (const Piece& piece : next.pieces) file_.read_ahead(piece.offset_bytes, piece.size_bytes);
    }
    const Span span = span_at(all.subspan(first));
    first += span.pieces.size();
    if (!span.rewritten) waiting -= span.pieces.size();
    write_span(span);
  }
  used_bytes_ = span_bytes_;
  count_ = 0;
}

void Scatter::write_span(const Span& span) {
  std::ranges::sort(span.pieces, {}, &Piece::at);  // the later one wins
  if (!span.rewritten) {
    for (const Piece& piece : span.pieces)
      put(piece.offset_bytes, {memory_.data() + piece.at, piece.size_bytes});
    return;
  }
  const std::span<std::byte> bytes = memory_.bytes().first(span.end_bytes - span.first_bytes);
  if (!span.covered) file_.read_blocks(span.first_bytes, bytes);
  for (const Piece& piece : span.pieces) {
    std::memcpy(bytes.data() + (piece.offset_bytes - span.first_bytes), memory_.data() + piece.at,
                piece.size_bytes);
  }
  put(span.first_bytes, bytes);
}

}  // namespace lowtide

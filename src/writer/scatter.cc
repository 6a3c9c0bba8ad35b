#include "writer/scatter.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kLeastScatterBytes = 64 << 10;
constexpr std::uint64_t kMostScatterBytes =
    1ULL << 30;                                 // more gains little, and a piece counts in 32 bits
constexpr std::size_t kPiecesAhead = 512;       // whose pages are being read
constexpr std::uint64_t kBytesAhead = 4 << 20;  // of the file, with what is between them
// A gap up to this size is read as well: one long read takes less time than two short ones.
constexpr std::uint64_t kReadGapBytes = 64 << 10;

// Asks for the pages of pieces before they are changed.
class PagesAhead {
 public:
  explicit PagesAhead(PublishedFile& file) : file_(file) {}
  ~PagesAhead() { ask(); }
  PagesAhead(const PagesAhead&) = delete;
  PagesAhead& operator=(const PagesAhead&) = delete;

  void add(std::uint64_t offset_bytes, std::uint64_t size_bytes) {
    const std::uint64_t first = std::max(end_, round_down(offset_bytes, WriteFile::kBlockBytes));
    const std::uint64_t end = round_up(offset_bytes + size_bytes, WriteFile::kBlockBytes);
    if (first >= end) return;
    if (first - end_ > kReadGapBytes) {
      ask();
      first_ = first;
    }
    end_ = end;
  }
  // Everything that was added is on its way.
  void ask() {
    if (first_ < end_) file_.read_ahead(first_, end_ - first_);
    first_ = end_;
  }

 private:
  PublishedFile& file_;
  std::uint64_t first_ = 0, end_ = 0;  // not asked for yet
};

}  // namespace

void Scatter::claim() {
  asked_ = true;
  const std::uint64_t bytes =
      round_down(std::min({budget_.limit_bytes() / 2, budget_.free_bytes(), kMostScatterBytes}),
                 WriteFile::kBlockBytes);
  if (bytes < kLeastScatterBytes) return;
  claim_ = budget_.claim(bytes, "scattered rows");
  memory_ = Memory(bytes, /*prefault=*/false, "scattered rows");
}

std::span<Scatter::Piece> Scatter::pieces() {
  return {reinterpret_cast<Piece*>(memory_.data() + memory_.size()) - count_, count_};
}

bool Scatter::add(std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  const MutexLock lock(mutex_);
  if (!asked_) claim();
  const std::uint64_t needed = bytes.size() + sizeof(Piece);
  if (needed > memory_.size()) return false;
  if (needed > memory_.size() - used_bytes_ - count_ * sizeof(Piece)) write_all();
  std::memcpy(memory_.data() + used_bytes_, bytes.data(), bytes.size());
  ++count_;
  pieces().front() = {.offset_bytes = offset_bytes,
                      .at = static_cast<std::uint32_t>(used_bytes_),
                      .size_bytes = static_cast<std::uint32_t>(bytes.size())};
  used_bytes_ += bytes.size();
  empty_ = false;
  return true;
}

void Scatter::make_way(std::uint64_t first_bytes, std::uint64_t end_bytes) {
  if (empty_) return;
  const MutexLock lock(mutex_);
  for (const Piece& piece : pieces()) {
    if (piece.offset_bytes < end_bytes && first_bytes < piece.end_bytes()) return write_all();
  }
}

void Scatter::flush() {
  if (empty_) return;
  const MutexLock lock(mutex_);
  write_all();
}

void Scatter::write_all() {
  const std::span<Piece> all = pieces();
  std::ranges::sort(all, {}, &Piece::offset_bytes);
  PagesAhead pages(file_);
  std::size_t asked = 0;
  for (std::size_t first = 0, end = 0; first < all.size(); first = end) {
    // Pieces that overlap are written in the order in which they came.
    std::uint64_t reach = all[first].end_bytes();
    for (end = first + 1; end < all.size() && all[end].offset_bytes < reach; ++end)
      reach = std::max(reach, all[end].end_bytes());
    std::ranges::sort(all.subspan(first, end - first), {}, &Piece::at);
    if (asked < end || all[asked - 1].offset_bytes < reach + kBytesAhead / 2) {
      for (; asked < all.size() && (asked < end || (asked < end + kPiecesAhead &&
                                                    all[asked].offset_bytes < reach + kBytesAhead));
           ++asked) {
        pages.add(all[asked].offset_bytes, all[asked].size_bytes);
      }
      pages.ask();
    }
    for (const Piece& piece : all.subspan(first, end - first)) {
      file_.write(piece.offset_bytes, {memory_.data() + piece.at, piece.size_bytes});
      bytes_written_ += piece.size_bytes;
      ++writes_;
    }
  }
  used_bytes_ = count_ = 0;
  empty_ = true;
}

}  // namespace lowtide

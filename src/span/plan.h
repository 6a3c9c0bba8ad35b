// plan.h - turns a set of Reads into the spans that are actually read: sorted by offset, with
// neighbours merged and long reads split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/extent.h"

namespace lowtide {

struct PlanLimits {
  bool merge = true;            // else the reads one by one, in their order
  std::uint32_t gap_bytes = 0;  // reads at most this far apart share a span
  // Longer reads are split. A multiple of every alignment.
  std::uint32_t max_span_bytes = 512 * 1024;
};

// One contiguous range of a file, and the reads of the set that need bytes of it.
struct Span {
  std::uint64_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
  std::uint32_t shard = 0;
  std::uint32_t first = 0;  // reads first .. last - 1, in plan order
  std::uint32_t last = 0;

  [[nodiscard]] std::uint64_t end_bytes() const { return offset_bytes + size_bytes; }
};

// Holds one 32-bit index per read if the reads were not sorted. Used by one thread at a time.
class SpanPlan {
 public:
  // The reads belong to the caller and must stay until the last span is placed.
  void start(std::span<const Read> reads, PlanLimits limits);

  // The next span in file order; false when there is none left.
  [[nodiscard]] bool next(Span* out);

  // Copies the bytes of the span, which start at `from`, to the targets of its reads.
  void place(const Span& span, const std::byte* from) const;

  // How many bytes that copies.
  [[nodiscard]] std::uint64_t placed_bytes(const Span& span) const;

  // The same for bytes of the span that arrive in parts, each where the one before ended: these
  // begin at `offset_bytes` of the file. `cursor` is 0 for the first part and belongs to this call.
  void place_part(const Span& span, std::uint64_t offset_bytes, std::span<const std::byte> part,
                  std::uint32_t* cursor) const;

  // Where the bytes of a span may go without a copy: the target of its only read, or nullptr.
  [[nodiscard]] std::byte* target(const Span& span) const;

  // The index in the set of the read that the byte at `offset_bytes` belongs to.
  [[nodiscard]] std::uint32_t culprit(const Span& span, std::uint64_t offset_bytes) const;

  // Reads saved by merging so far.
  [[nodiscard]] std::uint64_t merged() const { return merged_; }

  [[nodiscard]] static bool sorted(std::span<const Read> reads);
  // The average distance from one read to the next; nullopt if they are not sorted. Most sets that
  // are not sorted are recognised by their first reads.
  [[nodiscard]] static std::optional<std::uint64_t> sorted_distance(std::span<const Read> reads);

 private:
  [[nodiscard]] const Read& at(std::uint32_t i) const {
    return reads_[order_.empty() ? i : order_[i]];
  }
  void split(Span* out);

  std::span<const Read> reads_;
  std::vector<std::uint32_t> order_;  // empty: the reads were sorted
  PlanLimits limits_;
  std::uint32_t next_ = 0;         // in plan order
  std::uint64_t split_bytes_ = 0;  // of read next_, already handed out
  std::uint64_t merged_ = 0;
};

}  // namespace lowtide

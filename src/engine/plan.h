// plan.h - turns a set of Reads into the spans that are really read: sorted by place, neighbours
// merged, long ones split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/extent.h"

namespace lowtide {

struct PlanLimits {
  bool merge = true;            // else the reads one by one, as they came
  std::uint32_t gap_bytes = 0;  // reads at most this far apart come in one span
  // A longer read is split. A multiple of every alignment.
  std::uint32_t max_span_bytes = 512 * 1024;
};

// One contiguous piece of a file, and which reads of the set want bytes of it.
struct Span {
  std::uint64_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
  std::uint32_t shard = 0;
  std::uint32_t first = 0;  // reads first .. last - 1 in the order of the plan
  std::uint32_t last = 0;

  [[nodiscard]] std::uint64_t end_bytes() const { return offset_bytes + size_bytes; }
};

// Holds one 32-bit index a read where the reads did not come sorted. Used by one thread at a time.
class Plan {
 public:
  // The reads stay with the caller until the last span was placed.
  void start(std::span<const Read> reads, PlanLimits limits);

  // The next span in file order; false when there is none left.
  [[nodiscard]] bool next(Span* out);

  // Copies what `from`, the bytes of the span from its first one on, has for the reads of the span.
  void place(const Span& span, const std::byte* from) const;

  // Where the bytes of a span may go straight to: the target of its only read, or nullptr.
  [[nodiscard]] std::byte* target(const Span& span) const;

  // The read of the span, by its index in the set, that the byte at `offset_bytes` belongs to.
  [[nodiscard]] std::uint32_t culprit(const Span& span, std::uint64_t offset_bytes) const;

  // Reads saved by merging so far.
  [[nodiscard]] std::uint64_t merged() const { return merged_; }

  [[nodiscard]] static bool sorted(std::span<const Read> reads);

 private:
  [[nodiscard]] const Read& at(std::uint32_t i) const {
    return reads_[order_.empty() ? i : order_[i]];
  }
  void split(Span* out);

  std::span<const Read> reads_;
  std::vector<std::uint32_t> order_;  // empty: the reads came sorted
  PlanLimits limits_;
  std::uint32_t next_ = 0;         // in plan order
  std::uint64_t split_bytes_ = 0;  // of read next_, handed out already
  std::uint64_t merged_ = 0;
};

}  // namespace lowtide

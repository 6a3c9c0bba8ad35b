#include "span/plan.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/checked.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kSplitAlignmentBytes =
    4096;  // so that two parts of a split read never share a sector

bool before(const Extent& a, const Extent& b) {
  return a.shard != b.shard ? a.shard < b.shard : a.offset_bytes < b.offset_bytes;
}

}  // namespace

bool SpanPlan::sorted(std::span<const Read> reads) {
  for (std::size_t i = 1; i < reads.size(); ++i) {
    if (before(reads[i].from, reads[i - 1].from)) return false;
  }
  return true;
}

std::optional<std::uint64_t> SpanPlan::sorted_distance(std::span<const Read> reads) {
  std::uint64_t bytes = reads.back().from.size_bytes;
  for (std::size_t i = 1; i < reads.size(); ++i) {
    const Extent &last = reads[i - 1].from, &next = reads[i].from;
    if (next.shard < last.shard) return std::nullopt;
    if (next.shard > last.shard) {
      bytes += last.size_bytes;
    } else if (next.offset_bytes < last.offset_bytes) {
      return std::nullopt;
    } else {
      bytes += next.offset_bytes - last.offset_bytes;
    }
  }
  return bytes / reads.size();
}

void SpanPlan::start(std::span<const Read> reads, PlanLimits limits) {
  reads_ = reads;
  limits_ = limits;
  next_ = 0;
  split_bytes_ = 0;
  merged_ = 0;
  order_.clear();
  if (!limits.merge || sorted(reads)) return;
  order_.resize(reads.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::sort(order_.begin(), order_.end(),
            [&](std::uint32_t a, std::uint32_t b) { return before(reads[a].from, reads[b].from); });
}

bool SpanPlan::next(Span* out) {
  if (next_ == reads_.size()) return false;
  const Extent& head = at(next_).from;
  if (head.size_bytes > limits_.max_span_bytes) {
    split(out);
    return true;
  }
  std::uint64_t end = head.end_bytes();
  std::uint32_t last = next_ + 1;
  for (; limits_.merge && last < reads_.size(); ++last) {
    const Extent& more = at(last).from;
    const std::uint64_t new_end = std::max(end, more.end_bytes());
    if (more.shard != head.shard || more.offset_bytes > end + limits_.gap_bytes) break;
    if (new_end - head.offset_bytes > limits_.max_span_bytes) break;
    end = new_end;
  }
  *out = {.offset_bytes = head.offset_bytes,
          .size_bytes = static_cast<std::uint32_t>(end - head.offset_bytes),
          .shard = head.shard,
          .first = next_,
          .last = last};
  merged_ += last - next_ - 1;
  next_ = last;
  return true;
}

void SpanPlan::split(Span* out) {
  const Extent& whole = at(next_).from;
  const std::uint64_t offset = whole.offset_bytes + split_bytes_;
  std::uint64_t end = std::min(whole.end_bytes(), offset + limits_.max_span_bytes);
  if (end < whole.end_bytes() && round_down(end, kSplitAlignmentBytes) > offset) {
    end = round_down(end, kSplitAlignmentBytes);
  }
  *out = {.offset_bytes = offset,
          .size_bytes = static_cast<std::uint32_t>(end - offset),
          .shard = whole.shard,
          .first = next_,
          .last = next_ + 1};
  split_bytes_ += end - offset;
  if (end == whole.end_bytes()) {
    ++next_;
    split_bytes_ = 0;
  }
}

void SpanPlan::place(const Span& span, const std::byte* from) const {
  for (std::uint32_t i = span.first; i < span.last; ++i) {
    const Read& read = at(i);
    const std::uint64_t begin = std::max(read.from.offset_bytes, span.offset_bytes);
    const std::uint64_t end = std::min(read.from.end_bytes(), span.end_bytes());
    std::memcpy(read.into + (begin - read.from.offset_bytes), from + (begin - span.offset_bytes),
                end - begin);
  }
}

std::uint64_t SpanPlan::placed_bytes(const Span& span) const {
  std::uint64_t bytes = 0;
  for (std::uint32_t i = span.first; i < span.last; ++i) {
    const Extent& from = at(i).from;
    bytes += std::min(from.end_bytes(), span.end_bytes()) -
             std::max(from.offset_bytes, span.offset_bytes);
  }
  return bytes;
}

void SpanPlan::place_part(const Span& span, std::uint64_t offset_bytes,
                          std::span<const std::byte> part, std::uint32_t* cursor) const {
  const std::uint64_t part_end = offset_bytes + part.size();
  // Reads that ended before this part are skipped for good.
  while (span.first + *cursor < span.last &&
         at(span.first + *cursor).from.end_bytes() <= offset_bytes) {
    ++*cursor;
  }
  for (std::uint32_t i = span.first + *cursor; i < span.last; ++i) {
    const Read& read = at(i);
    if (read.from.offset_bytes >= part_end) return;
    const std::uint64_t begin = std::max(read.from.offset_bytes, offset_bytes);
    const std::uint64_t end = std::min(read.from.end_bytes(), part_end);
    if (begin >= end) continue;
    std::memcpy(read.into + (begin - read.from.offset_bytes), part.data() + (begin - offset_bytes),
                end - begin);
  }
}

std::byte* SpanPlan::target(const Span& span) const {
  if (span.last - span.first != 1) return nullptr;
  const Read& read = at(span.first);
  return read.into + (span.offset_bytes - read.from.offset_bytes);
}

std::uint32_t SpanPlan::culprit(const Span& span, std::uint64_t offset_bytes) const {
  for (std::uint32_t i = span.first; i < span.last; ++i) {
    if (at(i).from.end_bytes() > offset_bytes) return order_.empty() ? i : order_[i];
  }
  return order_.empty() ? span.first : order_[span.first];
}

}  // namespace lowtide

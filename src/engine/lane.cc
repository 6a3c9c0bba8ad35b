#include "engine/lane.h"

#include <algorithm>
#include <cerrno>

#include "core/checked.h"
#include "lowtide/error.h"
#include "os/residency.h"

namespace lowtide {
namespace {

// Each thread has a descriptor of its own for each of them: a matrix and its labels, or the few
// large files of a data set.
constexpr std::size_t kMostOwnShards = 4;
constexpr std::uint64_t kLeastSpanBytes = 4096;
constexpr std::uint64_t kMostSpanBytes = 512 * 1024;  // larger requests gain nothing

}  // namespace

std::uint32_t longest_span_bytes(std::uint64_t buffer_bytes) {
  const std::uint64_t room =
      buffer_bytes > kAlignmentRoomBytes ? buffer_bytes - kAlignmentRoomBytes : 0;
  return static_cast<std::uint32_t>(
      std::clamp(round_down(room, 4096), kLeastSpanBytes, kMostSpanBytes));
}

Outcome not_started(const std::exception& error) noexcept {
  const auto* const refused = dynamic_cast<const IoError*>(&error);
  Outcome outcome;
  outcome.err = refused != nullptr ? refused->err : ENOMEM;
  outcome.no_thread = refused != nullptr;
  return outcome;
}

// Relaxed: each counter is a sum of its own, and no reader concludes from one that data is there.
Traffic Lane::traffic() const noexcept {
  return {.bytes_read = bytes_read_.load(std::memory_order_relaxed),
          .reads = reads_.load(std::memory_order_relaxed),
          .merged = merged_.load(std::memory_order_relaxed)};
}

void Lane::count(std::uint64_t requests, std::uint64_t bytes) noexcept {
  reads_.fetch_add(requests, std::memory_order_relaxed);
  bytes_read_.fetch_add(bytes, std::memory_order_relaxed);
}

void Lane::count_merged(std::uint64_t reads) noexcept {
  merged_.fetch_add(reads, std::memory_order_relaxed);
}

ShardOpener::ShardOpener(std::shared_ptr<Files> files, Access access, bool own)
    : files_(std::move(files)), access_(access) {
  const std::size_t shards = files_->shards()->size();
  if (own && shards <= kMostOwnShards) own_.resize(shards);
}

OpenShard ShardOpener::open_now(std::uint32_t shard) {
  OpenShard opened{.file = keeps() ? files_->open_own(shard) : files_->open(shard)};
  opened.fd = opened.file->fd();
  opened.at_once = keeps() && opened.file->answers_at_once();
  if (access_ != Access::direct) return opened;
  const auto alignment = opened.file->direct_alignment();
  const bool fits = alignment && std::max(alignment->offset_bytes, alignment->memory_bytes) <=
                                     kMostAlignmentBytes;
  const int direct_fd = fits ? opened.file->direct_fd() : -1;
  opened.direct = direct_fd >= 0;
  // Without direct reads, the pages that ours bring in are dropped again: the caller wanted none.
  opened.drop_behind = !opened.direct;
  if (opened.direct) {
    opened.fd = direct_fd;
    opened.alignment_bytes = std::max(alignment->offset_bytes, alignment->memory_bytes);
  }
  return opened;
}

int ShardOpener::open(std::uint32_t shard, const OpenShard** out) noexcept try {
  OpenShard& here = keeps() ? own_[shard] : current_;
  if (!here || (!keeps() && shard_ != shard)) {
    here = open_now(shard);
    shard_ = shard;
  }
  *out = &here;
  return 0;
} catch (const IoError& error) {
  return error.err;
} catch (const FormatError&) {
  return ESTALE;  // the file that was opened again is not the one that was opened first
} catch (...) {
  return ENOMEM;
}

std::uint64_t OpenShard::aligned_bytes(const Span& span) const noexcept {
  return round_up(span.end_bytes(), alignment_bytes) -
         round_down(span.offset_bytes, alignment_bytes);
}

// A read may have begun beyond the end, so the size is asked for. The file may also have grown
// since: more than was reached is not reported.
std::uint64_t end_of(const File& file, std::uint64_t reached_bytes) noexcept try {
  return std::min(reached_bytes, file.stat_now().size_bytes);
} catch (...) {
  return reached_bytes;
}

namespace {

Outcome failed(const File& file, const SpanPlan& plan, const Span& span, const ReadResult& result,
               std::uint64_t at_bytes) {
  Outcome outcome;
  outcome.err = result.err;
  outcome.ended = result.err == 0;
  outcome.read = plan.culprit(span, at_bytes);
  outcome.found_bytes = outcome.ended ? end_of(file, at_bytes) : at_bytes;
  return outcome;
}

// Whole pages: the kernel keeps a page of which only a part is named.
void drop_behind(const File& file, const Span& span) {
  const std::uint64_t page = page_bytes();
  const std::uint64_t begin = round_down(span.offset_bytes, page);
  (void)file.advise(Advice::dont_need, begin, round_up(span.end_bytes(), page) - begin);
}

}  // namespace

Outcome read_span(const OpenShard& shard, const SpanPlan& plan, const Span& span, std::byte* bounce,
                  std::uint64_t done_bytes) noexcept {
  const std::uint64_t begin = round_down(span.offset_bytes, shard.alignment_bytes);
  const std::uint64_t need = span.end_bytes() - begin;
  // Direct reads need aligned memory, and what was read before is in the bounce buffer already.
  const bool may_bounce = shard.direct || (bounce != nullptr && done_bytes != 0);
  std::byte* straight = may_bounce ? nullptr : plan.target(span);
  std::byte* into = straight != nullptr ? straight : bounce;
  std::uint64_t have = done_bytes;
  if (shard.direct && have == 0) {
    const ReadResult result =
        shard.file->read_direct(begin, {into, round_up(need, shard.alignment_bytes)});
    // EINVAL: this file system accepts O_DIRECT at open but refuses the read; the buffered read
    // below decides.
    if (result.err != 0 && result.err != EINVAL) {
      return failed(*shard.file, plan, span, result, begin + result.placed_bytes);
    }
    have = result.placed_bytes;
  }
  const bool through_cache = have < need;
  if (through_cache) {  // everything, or the tail of a file that does not end on a sector
    const ReadResult result = shard.file->read(begin + have, {into + have, need - have});
    have += result.placed_bytes;
    if (have < need) return failed(*shard.file, plan, span, result, begin + have);
  }
  if (straight == nullptr) plan.place(span, into + (span.offset_bytes - begin));
  if (shard.drop_behind || (shard.direct && through_cache)) drop_behind(*shard.file, span);
  return {};
}

}  // namespace lowtide

// lane.h - one way to fetch bytes: a pool of pread threads or a ring, buffered or direct. Engines
// are made of lanes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "os/files.h"
#include "span/plan.h"

namespace lowtide {

// Bounce buffers have room for this alignment at either end. A file that requires more is read
// through the page cache.
constexpr std::uint32_t kMostAlignmentBytes = 4096;
constexpr std::uint32_t kAlignmentRoomBytes = 2 * kMostAlignmentBytes;

// The longest span that fits into a bounce buffer of this size.
[[nodiscard]] std::uint32_t longest_span_bytes(std::uint64_t buffer_bytes);

enum class Access {
  buffered,  // through the page cache
  direct,    // bypasses it if the file system allows; else buffered, and dropped afterwards
};

struct LaneOptions {
  Access access = Access::buffered;
  bool rings = false;  // each thread of a pool may use a ring for short reads
  bool merge = true;   // sort the set and fetch neighbours together
  std::uint32_t most_gap_bytes = UINT32_MAX;  // between two reads that are fetched together
  unsigned width = 4;                         // threads of a pool, or reads in flight of a ring
  std::size_t bounce_bytes = 0;  // room for reads that cannot go straight to their targets
};

class Lane {
 public:
  virtual ~Lane() = default;  // ends its threads; every set must be done

  // Threads start with the first set. As Engine::submit.
  virtual void submit(ReadSet& set) noexcept = 0;
  // Reads on the calling thread if that is faster than handing the reads over. False: nothing was
  // read; submit them.
  [[nodiscard]] virtual bool read_here(std::span<const Read> reads, Outcome* outcome) noexcept = 0;
  // The gap that the next merge would use; of a lane that merges sorted reads only, their average
  // distance. 0 for a lane that does not merge.
  [[nodiscard]] virtual std::uint32_t gap_bytes() const noexcept = 0;

  [[nodiscard]] Traffic traffic() const noexcept;

 protected:
  void count(std::uint64_t requests, std::uint64_t bytes) noexcept;
  void count_merged(std::uint64_t reads) noexcept;

 private:
  std::atomic<std::uint64_t> bytes_read_{0}, reads_{0}, merged_{0};
};

[[nodiscard]] std::unique_ptr<Lane> make_pread_lane(std::shared_ptr<Files> files,
                                                    const LaneOptions& options);
// Requires Ring::probe() to be empty.
[[nodiscard]] std::unique_ptr<Lane> make_uring_lane(std::shared_ptr<Files> files,
                                                    const LaneOptions& options);

// For shards that are objects on servers. `width`: the most requests in flight. Throws IoError
// where there is no libcurl.
[[nodiscard]] std::unique_ptr<Lane> make_http_lane(std::shared_ptr<Files> files,
                                                   const LaneOptions& options);

// A shard as a lane reads it.
struct OpenShard {
  std::shared_ptr<File> file;
  int fd = -1;
  bool direct = false;       // else buffered
  bool drop_behind = false;  // direct was wanted and is unavailable
  bool at_once = false;      // it is kept, and its file system has non-blocking reads
  std::uint32_t alignment_bytes = 1;

  [[nodiscard]] explicit operator bool() const { return file != nullptr; }
  // The bytes requested from the operating system for a span: whole units of the alignment.
  [[nodiscard]] std::uint64_t aligned_bytes(const Span& span) const noexcept;
};

// Opens shards for one thread, which mostly uses the same one again.
class ShardOpener {
 public:
  // `own`: uses file descriptions that no other thread shares, if there are only few shards.
  ShardOpener(std::shared_ptr<Files> files, Access access, bool own = false);

  // 0 or an errno; `out` points to the shard until the next call, or until the end if keeps().
  [[nodiscard]] int open(std::uint32_t shard, const OpenShard** out) noexcept;
  // Releases the shard, because another thread may need the descriptor.
  void forget() {
    if (!keeps()) current_ = {};
  }
  // Whether all shards stay open once they are, so that forget() has no effect.
  [[nodiscard]] bool keeps() const { return !own_.empty(); }

 private:
  [[nodiscard]] OpenShard open_now(std::uint32_t shard);

  std::shared_ptr<Files> files_;
  Access access_;
  std::vector<OpenShard> own_;  // by shard; empty: too many, or not wanted
  std::uint32_t shard_ = 0;
  OpenShard current_;  // with the number shard_, if own_ is empty
};

// The outcome of reads that never began; `error` says that no thread could be started, or that
// there was no memory.
[[nodiscard]] Outcome not_started(const std::exception& error) noexcept;

// Where a file ends if nothing could be read at `reached_bytes`.
[[nodiscard]] std::uint64_t end_of(const File& file, std::uint64_t reached_bytes) noexcept;

// Reads a whole span with plain system calls. `bounce` has room for the span and one alignment unit
// at either end; it may be nullptr if the span has one target and the shard is not direct.
// `done_bytes` of the span, counted from its first aligned byte, are already there. On success the
// bytes are placed.
[[nodiscard]] Outcome read_span(const OpenShard& shard, const SpanPlan& plan, const Span& span,
                                std::byte* bounce, std::uint64_t done_bytes = 0) noexcept;

}  // namespace lowtide

// options.h - how data is read, and in which order: the options that arrays and tokens share, and
// their words.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace lowtide {

// How bytes are fetched. The word of each value is its name ("auto" for automatic).
//   automatic: `memory` if the data fits the budget; otherwise threads with pread for cached bytes
//              and io_uring for bytes on the disk, or pread for both where io_uring is unavailable.
//   pread:     a pool of threads.
//   uring:     io_uring; an IoError where it is unavailable (see why_no_uring()).
//   memory:    all data is read once and then served from the budget; std::invalid_argument if it
//              does not fit.
enum class EngineKind { automatic, pread, uring, memory };
// What reading does to the page cache. Words as above.
//   automatic: keep if the data takes less than half of the available memory, otherwise drop.
//   keep:      the pages that are read stay in the page cache.
//   drop:      reads from the disk leave nothing in the page cache; pages that were cached before
//              stay.
enum class CacheMode { automatic, keep, drop };
// The order of an epoch. Words as above.
//   shuffle:    each sample once, in a permutation that depends only on the number of samples, the
//               seed and the epoch.
//   random:     samples drawn with replacement; windows start at any token. For a Loader only.
//   sequential: each sample once, in file order.
enum class OrderKind { shuffle, random, sequential };

// These turn a word into its value. They throw std::invalid_argument, which lists the known words,
// for anything else.
[[nodiscard]] EngineKind parse_engine(std::string_view word);
[[nodiscard]] CacheMode parse_cache(std::string_view word);
[[nodiscard]] OrderKind parse_order(std::string_view word);
[[nodiscard]] std::string_view order_word(OrderKind order);

// How an open array or token stream is read.
struct ReadOptions {
  // The most that the library holds, in bytes. 0: 256 MiB, or an eighth of the memory that this
  // process may use if that is less.
  std::uint64_t memory_bytes = 0;
  EngineKind engine = EngineKind::automatic;
  CacheMode cache = CacheMode::automatic;
  // Reads from the disk that are at most this many bytes apart may share one request. The bytes
  // between them are read and discarded, so this bounds the bytes read per byte delivered. Default:
  // chosen from the measured costs of the disk (Stats::gap_bytes). 0: only reads that touch or
  // overlap are merged.
  std::optional<std::uint64_t> gap_bytes = std::nullopt;
  // The most requests that are in flight at a time, for objects on servers.
  unsigned requests = 128;
  // A folder on a local disk that keeps the blocks of objects as they are read from servers. Later
  // epochs and other processes read them there. Empty: nothing is kept.
  std::string cache_dir = {};
  // The most that all processes keep in cache_dir. 0: a tenth of its file system stays free.
  std::uint64_t cache_bytes = 0;
  // For measuring the disk: cached pages are neither used nor dropped. This requires a file system
  // with direct I/O.
  bool past_cache = false;
};

// Numbers of rows, windows or tokens in the caller's memory, as integers of any of four types.
// Borrowed: the memory must outlive the call, or the Batches made from it.
using RowList = std::variant<std::span<const std::int64_t>, std::span<const std::uint64_t>,
                             std::span<const std::int32_t>, std::span<const std::uint32_t>>;

// Evenly spaced rows: first, first + step, ..., `count` of them.
struct RowRange {
  std::uint64_t first = 0;
  std::int64_t step = 1;  // not 0; below 0 the rows descend
  std::uint64_t count = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return count; }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t index) const noexcept {
    return first + index * static_cast<std::uint64_t>(step);  // modulo 2^64
  }
};
using RowSelection = std::variant<RowRange, RowList>;

// Why io_uring cannot be used here, in one line; empty if it works. Determined by trying.
[[nodiscard]] std::string why_no_uring();
// The budget that memory_bytes = 0 stands for in this process.
[[nodiscard]] std::uint64_t default_memory_bytes();

}  // namespace lowtide

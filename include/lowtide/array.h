// array.h - an on-disk array bigger than memory, read in any order within a memory budget.
//
//   auto array = lowtide::Array::open("m.npy", {.memory_bytes = 64 << 20});
//   auto batches = array.batches({.batch_size = 4096, .order = lowtide::OrderKind::shuffle});
//   while (auto batch = batches.next()) use(batch->samples(), batch->data());
//
// A row is what one index on the first axis gives: row_bytes() bytes, elements in C order, dtype as
// stored. What the library holds stays under memory_bytes whatever the file's size, the order and
// the number of epochs; what you asked for with read and take lies in your own memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lowtide/dtype.h"
#include "lowtide/error.h"

namespace lowtide {

// Each has its word: the enumerator's name, and "auto" for automatic.
enum class EngineKind { automatic, pread, uring, memory };
enum class CacheMode { automatic, keep, drop };
enum class OrderKind { sequential, shuffle };

// Anything but a word: std::invalid_argument that lists the words.
[[nodiscard]] EngineKind parse_engine(std::string_view word);
[[nodiscard]] CacheMode parse_cache(std::string_view word);
[[nodiscard]] OrderKind parse_order(std::string_view word);

struct OpenOptions {
  // What is in a file without a header; for a real .npy each must agree with the header if given.
  // dtype is NumPy's descr: "<f4", "float32", "[('x', '<f4')]"; offset_bytes is where the data
  // starts, 0 if not given; fortran_order is false if not given.
  std::optional<std::string> dtype = std::nullopt;
  std::optional<std::vector<std::uint64_t>> shape = std::nullopt;
  std::optional<std::uint64_t> offset_bytes = std::nullopt;
  std::optional<bool> fortran_order = std::nullopt;
  bool headerless = false;  // the bytes as they are, whatever they begin with: needs dtype

  // 0: 256 MiB, or an eighth of the memory that this process may use if that is less.
  std::uint64_t memory_bytes = 0;
  EngineKind engine = EngineKind::automatic;
  CacheMode cache = CacheMode::automatic;
  // Reads from the disk that lie at most this many bytes apart may share one request. Empty: as
  // many as the disk's own prices suggest (Stats::gap_bytes). 0: only reads that touch or overlap.
  // What lies between two reads is read and thrown away, so this bounds bytes_read per byte asked.
  std::optional<std::uint64_t> gap_bytes = std::nullopt;
  // To measure the disk: what is cached is neither used nor dropped. Needs direct I/O to mean it.
  bool past_cache = false;
};

// Borrowed: must stay until the Batches made from it is gone.
using RowList = std::variant<std::span<const std::int64_t>, std::span<const std::uint64_t>,
                             std::span<const std::int32_t>, std::span<const std::uint32_t>>;

struct BatchOptions {
  std::uint64_t batch_size = 4096;  // rows
  OrderKind order = OrderKind::sequential;
  // Your own order instead; duplicates allowed, range checked. Borrowed: it must stay as it is for
  // as long as the Batches live. An entry that is out of range when its turn comes is an error.
  std::optional<RowList> rows = std::nullopt;
  // Whether `rows` is memory that is held for these batches only, and so counts as theirs.
  bool claim_rows = false;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  // This rank gets batches rank, rank + world_size, ... of the one global order.
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  // Leave out a last batch that is short, and what would give some ranks a step more than others.
  // Where nothing of the epoch is left, `batches` throws std::invalid_argument.
  bool drop_last = false;
};

// Where the bytes came from so far. Counts grow; they are summed over everything done through one
// Array.
struct Stats {
  std::uint64_t bytes_asked = 0;  // delivered to you
  std::uint64_t bytes_read = 0;   // asked of the operating system, gaps and alignment included
  std::uint64_t reads = 0;        // read requests to the operating system
  std::uint64_t merged = 0;       // reads saved because neighbours were fetched together
  std::uint64_t wait_ns = 0;      // your thread waited for bytes
  std::uint64_t gap_bytes = 0;    // neighbours closer than this are fetched together now
  std::string engine;             // what serves now: "pread", "uring", "pread+uring", "memory"
  std::string engine_reason;      // why
  std::string cache;              // "keep" or "drop"
  std::string cache_reason;
  std::string layout;  // "C", or "F: a row gather reads ..." for Fortran order
  std::uint64_t memory_limit_bytes = 0;
  std::vector<std::pair<std::string, std::uint64_t>> memory_claims;  // what we hold, by name
  std::uint64_t held_by_you_bytes = 0;  // batches kept beyond the one in your hand
};

// A batch is a lease: the rows stay valid and unchanged for as long as the Batch lives, even when
// the Batches and the Array are gone. Then the buffer serves another batch. Movable; the bytes are
// yours to write.
class Batch {
 public:
  class Impl;
  explicit Batch(std::unique_ptr<Impl> impl);
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  // Which rows, in the order of data().
  [[nodiscard]] std::span<const std::uint64_t> samples() const;
  [[nodiscard]] std::byte* data() const;     // samples().size() rows, one after the other
  [[nodiscard]] std::uint64_t step() const;  // of this rank, from 0, in this epoch
  [[nodiscard]] std::uint64_t epoch() const;

 private:
  std::unique_ptr<Impl> impl_;
};

// Reads ahead of you on threads of its own. One consumer at a time. After a fork the child goes on
// from the same place with threads of its own.
class Batches {
 public:
  class Impl;
  explicit Batches(std::unique_ptr<Impl> impl);
  Batches(Batches&&) noexcept;
  Batches& operator=(Batches&&) noexcept;
  ~Batches();  // cancels; waits only for reads that the kernel has already

  // The next batch, or nullopt at the end of the epoch. Throws the first error of a reader, with
  // step and path.
  [[nodiscard]] std::optional<Batch> next();

  // The same, but gives up after `timeout` so that a caller can look for Ctrl-C: then `timed_out`
  // is true.
  [[nodiscard]] std::optional<Batch> next_for(std::chrono::milliseconds timeout, bool* timed_out);

  [[nodiscard]] std::uint64_t steps() const;     // batches of this rank in the epoch
  [[nodiscard]] std::uint64_t position() const;  // steps delivered: a new Batches can seek to it
  void seek(std::uint64_t step);                 // O(1): nothing is replayed
  void cancel() noexcept;  // from any thread: ends a waiting next() with nullopt

 private:
  std::unique_ptr<Impl> impl_;
};

// Any thread may call any const member at the same time. Copies share one open array.
class Array {
 public:
  class Impl;

  // A path that exists is itself; else a glob, sorted by bytes. Opens O(1) I/O: headers only.
  // Throws IoError, FormatError, and std::invalid_argument where memory_bytes is too little for one
  // row.
  [[nodiscard]] static Array open(const std::string& path, const OpenOptions& options = {});
  // Several files joined along the first axis: same dtype, same further axes. Empty files among
  // others are skipped.
  [[nodiscard]] static Array open(std::span<const std::string> paths,
                                  const OpenOptions& options = {});

  [[nodiscard]] const DType& dtype() const;
  [[nodiscard]] const std::vector<std::uint64_t>& shape() const;
  [[nodiscard]] const std::string& format() const;  // "npy" or "raw"
  [[nodiscard]] bool fortran_order() const;
  [[nodiscard]] std::uint64_t rows() const;  // shape()[0]; 1 for a 0-d array
  [[nodiscard]] std::uint64_t row_bytes() const;
  // After expansion, empty files left out.
  [[nodiscard]] std::vector<std::string> paths() const;
  [[nodiscard]] std::vector<std::uint64_t> file_rows() const;  // how many rows each file has
  [[nodiscard]] std::uint64_t memory_bytes() const;            // the budget in force

  // Rows first .. first + count - 1 into `out`, which has room for count * row_bytes(). Throws
  // std::out_of_range, IoError, FormatError. A failed read leaves `out` undefined, never half
  // believed.
  void read(std::uint64_t first, std::uint64_t count, std::byte* out) const;
  // Any rows, any order, duplicates allowed. Entries are 0 .. rows() - 1.
  void take(RowList rows, std::byte* out) const;

  // Bytes [offset, offset + size) of each of some rows: what a[:, 10:20] needs of long rows. C
  // order only.
  void take_part(RowList rows, std::uint64_t offset_bytes, std::uint64_t size_bytes,
                 std::byte* out) const;

  [[nodiscard]] Batches batches(const BatchOptions& options) const;

  // All elements along one axis, in the order in which they lie in their files, as an Array of its
  // own with a budget of its own: what a slice along the columns of a Fortran-order array needs.
  [[nodiscard]] Array flat(std::uint64_t memory_bytes) const;

  [[nodiscard]] Stats stats() const;
  // Further calls throw std::invalid_argument; batches under way go on.
  void close();
  [[nodiscard]] bool closed() const;

 private:
  explicit Array(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

// What this build and this machine can do: one line each, for people.
[[nodiscard]] std::string why_no_uring();  // empty when io_uring works here
[[nodiscard]] std::uint64_t default_memory_bytes();

}  // namespace lowtide

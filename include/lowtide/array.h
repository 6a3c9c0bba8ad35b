// array.h - an on-disk array that is bigger than memory, read in any order within a memory budget.
//
//   auto array = lowtide::Array::open("m.npy", {.read = {.memory_bytes = 64 << 20}});
//   auto batches = array.batches({.batch_size = 4096, .seed = 1});
//   for (const lowtide::Batch& batch : batches) use(batch.index(), batch.as<float>());
//
// A row is what one index on the first axis selects: row_bytes() bytes, with the elements in C
// order and the dtype as stored. The library holds at most memory_bytes, whatever the file size,
// the order and the number of epochs. The results of read() and take() are in your own memory and
// are not counted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lowtide/address.h"
#include "lowtide/batch.h"
#include "lowtide/chunks.h"
#include "lowtide/dtype.h"
#include "lowtide/error.h"
#include "lowtide/options.h"
#include "lowtide/state.h"
#include "lowtide/stats.h"

namespace lowtide {

// How to open an array.
struct OpenOptions {
  // The first four options describe a file without a header. If the file has a .npy header, those
  // that are given must agree with it.
  //
  // The element type, as NumPy's descr or name: "<f4", "float32", "[('x', '<f4')]". Required
  // without a header.
  std::optional<std::string> dtype = std::nullopt;
  // Default: one axis that holds all elements of the file.
  std::optional<std::vector<std::uint64_t>> shape = std::nullopt;
  // Where the data starts, in bytes. Default: 0.
  std::optional<std::uint64_t> offset_bytes = std::nullopt;
  // Default: false, which is C order.
  std::optional<bool> fortran_order = std::nullopt;
  // Reads the bytes as raw data even if they begin like a header. Requires dtype.
  bool headerless = false;
  // Selects one array of a file or folder that contains several: a tensor of a safetensors file, a
  // member of an .npz, or an array of a zarr group. Not needed if there is only one. In these
  // files, and in files of vectors (.fbin, .fvecs), a dtype without a key means that the bytes are
  // raw data.
  std::optional<std::string> key = std::nullopt;

  ReadOptions read = {};
  // Signs the requests for objects. Default: requests for s3:// are signed with the keys of the
  // environment; others are not signed.
  SignRequest sign = nullptr;
  // Lists objects, for addresses with a pattern and for folders. Default: for s3://, the server of
  // the bucket is asked, unless `sign` is set; other addresses cannot be listed.
  ListObjects list = nullptr;
};

// What Array::batches delivers.
struct BatchOptions {
  std::uint64_t batch_size = 4096;  // rows per batch, at least 1
  OrderKind order = OrderKind::shuffle;
  // Your own order, which replaces `order`; duplicates are allowed. Every entry is checked when the
  // Batches is made. The list is borrowed and must not change while the Batches exists; if an entry
  // is out of range by the time it is used, next() throws.
  std::optional<RowList> rows = std::nullopt;
  // True if the memory of `rows` is held only for these batches. It then counts towards the budget.
  bool claim_rows = false;
  // Memory that you hold under the same budget while you use these batches, such as the
  // memory_bytes of an ArrayWriter for the results. It is claimed while the Batches exists.
  std::uint64_t beside_bytes = 0;
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  // This rank gets batches rank, rank + world_size, ... of the one global order.
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  // Leaves out a short last batch, and any batches that would give some ranks one step more than
  // others. If no batch is left, `batches` throws std::invalid_argument.
  bool drop_last = false;
};

class Run;  // internal

// The batches of one epoch for one rank, read ahead on threads of its own. It keeps the files and
// the budget of its Array alive. One consumer at a time; cancel() may be called from any thread. In
// the child of a fork it continues from the same step with threads of its own.
class Batches {
 public:
  explicit Batches(std::unique_ptr<Run> run);
  Batches(Batches&&) noexcept;
  Batches& operator=(Batches&&) noexcept;
  // Cancels. Waits only for reads that the kernel has already started.
  ~Batches();

  // The next batch, with the rows as its one column; an empty one at the end of the epoch and after
  // cancel(). Blocks until the batch has been read. Throws the first error of a reader (IoError,
  // FormatError), with step and path; the next call tries that read again.
  [[nodiscard]] Batch next();

  // As next(), but returns nullopt after `timeout`, so that the caller can check for Ctrl-C.
  [[nodiscard]] std::optional<Batch> next_for(std::chrono::milliseconds timeout);

  // For range-for: the remaining batches.
  [[nodiscard]] BatchIterator<Batches> begin() { return {*this, 0}; }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

  // How many batches this rank has in the epoch.
  [[nodiscard]] std::uint64_t steps() const;
  [[nodiscard]] std::uint64_t epoch() const;
  // How many of them precede the next one, in batches of the current size. A new Batches can seek
  // to this number.
  [[nodiscard]] std::uint64_t position() const;
  // Continues at `step`, from 0 to steps(). O(1): nothing is replayed. Throws std::out_of_range.
  void seek(std::uint64_t step);

  // The state after the last delivered batch. Reads the fingerprint of the data once.
  [[nodiscard]] State state() const;
  // Continues from a state, in the epoch that it names, with any batch size and world size. Throws
  // std::invalid_argument if data, rows, order or seed differ; the message names which.
  void restore(const State& state);
  // Ends the iteration: a next() that is waiting returns an empty batch, and so does every later
  // call.
  void cancel() noexcept;

 private:
  friend class BatchIterator<Batches>;
  [[nodiscard]] Batch next_in(std::uint64_t /*epoch*/) { return next(); }

  std::unique_ptr<Run> run_;
};

// An open array. Copies share one open array and its budget; the last copy, or the last Batches
// made from it, closes the files. Any number of threads may call const members at the same time.
// In the child of a fork the files are opened again when they are first used.
class Array {
 public:
  class Impl;

  // Opens a file, a folder (a zarr array or group, or the .npy files in it, sorted by bytes), an
  // address, or, if nothing has that name, the files that match it as a glob pattern, sorted by
  // bytes. Reads only headers. Throws IoError, FormatError, and std::invalid_argument if an option
  // is wrong or memory_bytes is too small for one row.
  [[nodiscard]] static Array open(const std::string& path, const OpenOptions& options = {});
  // Opens several files joined along the first axis. Their dtypes and their other axes must be
  // equal. Empty files among others are skipped. Throws as above.
  [[nodiscard]] static Array open(std::span<const std::string> paths,
                                  const OpenOptions& options = {});

  // Opens an array in chunks whose locations are known. Throws as above. The table of chunks counts
  // towards the budget: 8 bytes per chunk, or 12 if there are several files.
  [[nodiscard]] static Array open_chunks(ArrayChunks chunks, const ReadOptions& options = {});
  // Opens an array whose rows are in stretches whose locations are known. Throws as above. The
  // table of stretches counts towards the budget: 48 bytes per stretch.
  [[nodiscard]] static Array open_stretches(ArrayStretches stretches,
                                            const ReadOptions& options = {});

  [[nodiscard]] const DType& dtype() const;
  [[nodiscard]] const std::vector<std::uint64_t>& shape() const;
  // "npy", "safetensors", "raw", or another word of the table in docs/formats.md.
  [[nodiscard]] const std::string& format() const;
  [[nodiscard]] bool fortran_order() const;
  // shape()[0], or 1 for a 0-d array.
  [[nodiscard]] std::uint64_t rows() const;
  [[nodiscard]] std::uint64_t row_bytes() const;
  // The files after expansion of patterns, without empty ones. An array whose chunks are files has
  // one path, that of their folder.
  [[nodiscard]] std::vector<std::string> paths() const;
  // The number of rows in each of paths().
  [[nodiscard]] std::vector<std::uint64_t> file_rows() const;
  // The budget in force.
  [[nodiscard]] std::uint64_t memory_bytes() const;

  // Reads rows first .. first + count - 1 into `out`, which must hold exactly count * row_bytes()
  // bytes. Throws std::out_of_range, IoError, FormatError (the file was truncated), and
  // std::invalid_argument if the array is closed or `out` has the wrong size. After an exception
  // the contents of `out` are unspecified.
  void read(std::uint64_t first, std::uint64_t count, std::span<std::byte> out) const;
  // Reads any rows in any order into `out`; duplicates are allowed. Entries are 0 .. rows() - 1.
  // Throws as read().
  void take(RowList rows, std::span<std::byte> out) const;

  // Reads bytes [offset_bytes, offset_bytes + size_bytes) of each of these rows, as a[:, 10:20]
  // does for long rows. Throws as read(), and std::invalid_argument if the array is in Fortran
  // order.
  void take_part(RowList rows, std::uint64_t offset_bytes, std::uint64_t size_bytes,
                 std::span<std::byte> out) const;

  // The batches of one epoch; reading starts with the first next(). Throws std::invalid_argument if
  // an option is wrong or the budget is too small for one batch, and std::out_of_range for a wrong
  // entry of `rows`. If a file has changed since it was opened, throws FormatError (truncated) or
  // IoError (rewritten).
  [[nodiscard]] Batches batches(const BatchOptions& options) const;

  // All elements on one axis, in file order (in C order, if they are in chunks), as a separate
  // Array with a budget of `memory_bytes` (0: the default). Use it to read columns of an array in
  // Fortran order.
  [[nodiscard]] Array flat(std::uint64_t memory_bytes) const;

  // A hash of the layout, the rows of each file and samples of the contents, read with at most 64
  // small reads. A copy of the data has the same fingerprint.
  [[nodiscard]] std::uint64_t fingerprint() const;

  // Throws std::invalid_argument if the array is closed.
  [[nodiscard]] Stats stats() const;
  // Closes all copies. Later reads throw std::invalid_argument; batches in progress continue.
  void close();
  [[nodiscard]] bool closed() const;

 private:
  explicit Array(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace lowtide

// writer.h - writes arrays that are bigger than memory, in any order, with flat memory use.
//
//   auto writer = lowtide::ArrayWriter::create("out.npy",
//                                              {.dtype = "float32", .row_shape = {{162}}});
//   writer.append(count, bytes);
//   writer.close();  // only now does "out.npy" appear
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/dtype.h"
#include "lowtide/options.h"

namespace lowtide {

struct CreateOptions {
  // The element type: "float32", "<f4", or the descr of a .npy header. Required, unless you append
  // to an existing file; then it must match that file.
  std::optional<std::string> dtype = std::nullopt;
  // The first axis. nullopt: as many rows as are appended.
  std::optional<std::uint64_t> rows = std::nullopt;
  // The other axes; empty for a one-dimensional array. nullopt: call set_row_shape() before you
  // write the first rows.
  std::optional<std::vector<std::uint64_t>> row_shape = std::nullopt;
  // Requires `rows`.
  bool fortran_order = false;
  // Adds rows to an existing file, in place. If there is none, it is created.
  bool append = false;
  // The most that the writer holds, in bytes: gathered rows and pages that are not on the disk yet.
  // 0: default_memory_bytes().
  std::uint64_t memory_bytes = 0;
};

// What was written so far. The counters only grow.
struct WriteStats {
  std::uint64_t bytes_given = 0;    // by you
  std::uint64_t bytes_written = 0;  // passed to the operating system
  std::uint64_t writes = 0;         // in this many requests
  std::uint64_t wait_ns = 0;        // time that your threads spent in write, append, commit, close
  std::uint64_t memory_limit_bytes = 0;
  std::vector<std::pair<std::string, std::uint64_t>> memory_claims;  // bytes that we hold, by name
};

// An array that is being written to a .npy file.
//
// The file is written under a hidden name beside its path and renamed when it is complete and
// durable, by close() or the first commit(). So at any moment, even after a crash, the path holds
// either the old file or the whole new one. A writer that is destroyed without close() leaves what
// was last committed, or the old file. A path can have only one writer: creating a second one
// throws IoError (EBUSY).
//
// You pass whole rows in C order; with fortran_order, all rows of one call together are in Fortran
// order, as in the file. Rows that are never written are zeros. Any number of threads may write at
// the same time; if two write the same row, either may win. After an IoError the writer is broken:
// every later call throws, and nothing more is published.
//
// In the child of a fork every call throws std::invalid_argument, and the destructor does nothing.
// To write one array from several processes, use part().
class ArrayWriter {
 public:
  class Impl;

  // Throws IoError at once if the file cannot be created there, FormatError if an existing file
  // does not allow rows to be added, and std::invalid_argument if an option is wrong, contradicts
  // the existing file, or memory_bytes is too small.
  [[nodiscard]] static ArrayWriter create(const std::string& path,
                                          const CreateOptions& options = {});
  ArrayWriter(ArrayWriter&&) noexcept;
  ArrayWriter& operator=(ArrayWriter&&) noexcept;
  ~ArrayWriter();  // as abandon()

  [[nodiscard]] const std::string& path() const;
  [[nodiscard]] const DType& dtype() const;
  [[nodiscard]] bool fortran_order() const;
  // The first axis is rows().
  [[nodiscard]] std::vector<std::uint64_t> shape() const;
  // The rows of the array: as created, or as many as were appended so far.
  [[nodiscard]] std::uint64_t rows() const;
  // The row after the last one that was written: append() continues there.
  [[nodiscard]] std::uint64_t next_row() const;
  [[nodiscard]] std::uint64_t row_bytes() const;
  [[nodiscard]] bool has_row_shape() const;
  // For a writer that was created without a row_shape. Throws std::invalid_argument if it
  // contradicts what is known.
  void set_row_shape(std::vector<std::uint64_t> row_shape);

  // Writes rows first .. first + count - 1, which must be below rows(). `bytes` must have count *
  // row_bytes() bytes. Throws std::out_of_range, std::invalid_argument and IoError.
  void write(std::uint64_t first, std::uint64_t count, std::span<const std::byte> bytes);
  // Writes row i of `bytes` to row rows[i] of the array. If a row is listed twice, the last one
  // wins. If any is out of range, nothing is written. Throws as write().
  void write_rows(RowList rows, std::span<const std::byte> bytes);
  // Writes rows after the last one that was written, and returns the number of the first. If
  // several threads append, their rows are in the order of the calls.
  std::uint64_t append(std::uint64_t count, std::span<const std::byte> bytes);

  // Leaves rows first .. end - 1 to another process. The result is text that contains all it needs
  // for open_part(). close() publishes the file once every part is closed; until then this writer
  // may write the other rows. Requires a known shape, C order, no commit() so far, and a new file.
  // Throws std::out_of_range, std::invalid_argument (for example, rows of another part) and
  // IoError.
  [[nodiscard]] std::string part(std::uint64_t first, std::uint64_t end);
  // Opens a part for writing, in this process or another one. Rows keep their numbers in the whole
  // array, and append() begins at the first row of the part. close() makes the rows durable and
  // reports the part as done; commit() is not possible. A part that was lost or abandoned may be
  // opened again, by one process at a time (otherwise IoError, EBUSY). Other machines may open
  // parts if the shared file system keeps their caches coherent, because two parts may have rows in
  // the same block. memory_bytes 0: as much as the writer of the array has. Throws as create(), and
  // IoError (ESTALE) once the array is published or abandoned.
  [[nodiscard]] static ArrayWriter open_part(const std::string& part,
                                             std::uint64_t memory_bytes = 0);

  // Makes everything written so far durable and readable under the path, as an array of next_row()
  // rows. Waits for the disk. Throws std::invalid_argument in Fortran order and if there are parts.
  void commit();
  // Writes what is left and publishes the array. Later calls do nothing. If a part is not closed,
  // throws std::invalid_argument, which names it; nothing is published and the writer stays open.
  void close();
  // Drops what was not committed, and closes. Never throws.
  void abandon() noexcept;
  [[nodiscard]] bool closed() const;
  [[nodiscard]] WriteStats stats() const;

 private:
  explicit ArrayWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lowtide

// array_file.h - an array that is being written, as one process sees it. Behind ArrayWriter, whose
// header says what the calls do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/budget.h"
#include "core/mutex.h"
#include "format/array_header.h"
#include "lowtide/writer.h"
#include "writer/gather.h"
#include "writer/part_ticket.h"
#include "writer/published_file.h"

namespace lowtide {

// Any thread. commit, close and abandon wait for the writes that run, and new writes wait for them.
class ArrayFile {
 public:
  ArrayFile(const std::string& path, const CreateOptions& options);
  // A part of an array that another process creates. 0: as much memory as that one has.
  ArrayFile(const PartTicket& ticket, std::uint64_t memory_bytes);
  ~ArrayFile() { abandon(); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const DType& dtype() const { return dtype_; }
  [[nodiscard]] bool fortran_order() const { return fortran_order_; }
  [[nodiscard]] std::vector<std::uint64_t> shape() const;
  [[nodiscard]] std::uint64_t rows() const;
  [[nodiscard]] std::uint64_t next_row() const;
  [[nodiscard]] std::uint64_t row_bytes() const;
  [[nodiscard]] bool has_row_shape() const;
  void set_row_shape(std::vector<std::uint64_t> row_shape);

  void write(std::uint64_t first, std::uint64_t count, std::span<const std::byte> bytes);
  void write_rows(const RowList& rows, std::span<const std::byte> bytes);
  std::uint64_t append(std::uint64_t count, std::span<const std::byte> bytes);
  // The text of a ticket for rows [first, end).
  [[nodiscard]] std::string part(std::uint64_t first, std::uint64_t end);
  void commit();
  void close();
  void abandon() noexcept;
  [[nodiscard]] bool closed() const;
  [[nodiscard]] WriteStats stats() const;

 private:
  class Writing;
  // Waits until no other thread writes, and keeps them out.
  class Alone {
   public:
    explicit Alone(ArrayFile& array);
    ~Alone();
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;

   private:
    ArrayFile& array_;
    const std::uint64_t start_ns_;
  };
  struct Place {  // of a row number in the caller's list
    std::uint64_t row;
    std::uint64_t index;
  };
  [[nodiscard]] std::uint64_t place_count() const;
  void claim_memory();
  void open_file(PublishedFile::Start start);
  void check_part(std::uint64_t first, std::uint64_t end) const LOWTIDE_REQUIRES(mutex_);
  // Throws unless these rows are for this writer to write; `parts` are those of other processes.
  void check_own(std::span<const PartTicket> parts, std::uint64_t first, std::uint64_t end) const;
  void check_parts_closed();
  void close_part();
  void go_on(const CreateOptions& options) LOWTIDE_REQUIRES(mutex_);
  void make_header(std::vector<std::uint64_t> row_shape) LOWTIDE_REQUIRES(mutex_);
  void check_open() const LOWTIDE_REQUIRES(mutex_);
  void check_size(std::uint64_t count, std::size_t size_bytes) const LOWTIDE_REQUIRES(mutex_);
  void check_range(std::uint64_t first, std::uint64_t end) const LOWTIDE_REQUIRES(mutex_);
  void check_growth(std::uint64_t rows) const LOWTIDE_REQUIRES(mutex_);
  [[nodiscard]] std::uint64_t rows_now() const LOWTIDE_REQUIRES(mutex_) {
    return rows_ ? *rows_ : next_row_;
  }
  // Where to put rows, once they are checked. Without the lock: nothing of this changes any more.
  struct Target {
    std::uint64_t data_bytes;  // where the data starts
    std::uint64_t row_bytes;
    std::uint64_t item_bytes;
    std::uint64_t rows;  // only for Fortran order
  };
  [[nodiscard]] Target target() const LOWTIDE_REQUIRES(mutex_);
  void put(const Target& target, std::uint64_t first, std::uint64_t count,
           std::span<const std::byte> bytes);
  void put_rows(const Target& target, std::span<Place> places, std::span<const std::byte> bytes,
                std::uint64_t count);
  void publish(std::uint64_t rows, bool last);
  void release() noexcept;

  const std::string path_;
  Budget budget_;
  std::vector<Claim> claims_;
  std::unique_ptr<PublishedFile> file_;  // nullptr when closed, as are the next two
  std::unique_ptr<Gather> gather_;
  DType dtype_;
  const bool fortran_order_;
  const std::uint64_t places_;  // how many row numbers are sorted at a time
  std::atomic<std::uint64_t> bytes_given_ = 0, wait_ns_ = 0;
  WriteStats last_stats_;                     // when closed
  const std::optional<PartTicket> own_part_;  // if another process creates the array

  mutable Mutex mutex_;
  CondVar changed_;
  int writing_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  bool alone_ LOWTIDE_GUARDED_BY(mutex_) = false;
  bool closed_ LOWTIDE_GUARDED_BY(mutex_) = false;
  std::optional<ArrayHeader> header_ LOWTIDE_GUARDED_BY(mutex_);  // once the row shape is known
  std::uint64_t row_bytes_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::optional<std::uint64_t> rows_ LOWTIDE_GUARDED_BY(mutex_);
  std::uint64_t next_row_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::uint64_t committed_rows_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::uint64_t kept_bytes_ LOWTIDE_GUARDED_BY(mutex_) = 0;   // of a published file, if abandoned
  std::vector<PartTicket> parts_ LOWTIDE_GUARDED_BY(mutex_);  // of other processes, by first row
  Mutex places_mutex_;  // one list of row numbers is sorted at a time
};

}  // namespace lowtide

// The part of ArrayFile that puts rows into their places.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "core/checked.h"
#include "core/clock.h"
#include "writer/array_file.h"

namespace lowtide {
namespace {

[[noreturn]] void throw_no_row(const std::string& row, std::uint64_t rows) {
  throw std::out_of_range("row " + row + " is out of bounds for an array of " +
                          std::to_string(rows) + " rows");
}

[[noreturn]] void throw_committed(const std::string& path, std::uint64_t row, std::uint64_t rows) {
  throw std::invalid_argument(
      path + ": row " + std::to_string(row) +
      " is committed and cannot be overwritten, because a crash could leave it half-written; rows "
      "from " +
      std::to_string(rows) + " on can be written");
}

}  // namespace

// One call that writes: commit and close wait for it.
class ArrayFile::Writing {
 public:
  // With the lock held, once the arguments have been checked.
  explicit Writing(ArrayFile& array, std::uint64_t size_bytes) LOWTIDE_REQUIRES(array.mutex_)
      : array_(array) {
    ++array.writing_;
    array.bytes_given_ += size_bytes;
  }
  ~Writing() {
    array_.wait_ns_ += now_ns() - start_ns_;
    const MutexLock lock(array_.mutex_);
    if (--array_.writing_ == 0) array_.changed_.notify_all();
  }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;

 private:
  ArrayFile& array_;
  const std::uint64_t start_ns_ = now_ns();
};

void ArrayFile::check_open() const {
  if (closed_) throw std::invalid_argument(path_ + ": the writer is closed");
}

void ArrayFile::check_size(std::uint64_t count, std::size_t size_bytes) const {
  check_open();
  file_->check_sound();  // rows that only wait in memory would not find out
  if (!header_) {
    throw std::invalid_argument(path_ +
                                ": the shape of a row is not known yet; call set_row_shape first");
  }
  std::uint64_t expected = 0;
  if (checked_mul(count, row_bytes_, &expected) && expected == size_bytes) return;
  throw std::invalid_argument(path_ + ": expected " + std::to_string(count) + " rows of " +
                              std::to_string(row_bytes_) + " bytes, found " +
                              std::to_string(size_bytes) + " bytes");
}

void ArrayFile::check_range(std::uint64_t first, std::uint64_t end) const {
  if (end > rows_now()) throw_no_row(std::to_string(end - 1), rows_now());
  if (first < committed_rows_ && first < end) throw_committed(path_, first, committed_rows_);
  check_own(parts_, first, end);
}

void ArrayFile::check_growth(std::uint64_t rows) const {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t bytes = 0;
  if (!checked_mul(rows, row_bytes_, &bytes) || bytes > kMost - header_->size_bytes()) {
    throw std::invalid_argument(path_ + ": " + std::to_string(rows) + " rows of " +
                                std::to_string(row_bytes_) + " bytes exceed 2^63 bytes in total");
  }
  if (rows <= header_->most_rows()) return;
  throw std::invalid_argument(path_ + ": the header has room for at most " +
                              std::to_string(header_->most_rows()) +
                              " rows; copy the array into a new file to add more");
}

ArrayFile::Target ArrayFile::target() const {
  return {.data_bytes = header_->size_bytes(),
          .row_bytes = row_bytes_,
          .item_bytes = header_->layout().dtype.itemsize_bytes,
          .rows = header_->layout().fortran_order ? rows_now() : 0};
}

void ArrayFile::put(const Target& target, std::uint64_t first, std::uint64_t count,
                    std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (target.rows == 0) return gather_->write(target.data_bytes + first * target.row_bytes, bytes);
  const std::uint64_t run = count * target.item_bytes;
  for (std::uint64_t column = 0; column * run < bytes.size(); ++column) {
    gather_->write(target.data_bytes + (column * target.rows + first) * target.item_bytes,
                   bytes.subspan(column * run, run));
  }
}

void ArrayFile::write(std::uint64_t first, std::uint64_t count, std::span<const std::byte> bytes) {
  MutexLock lock(mutex_);
  while (alone_) changed_.wait(mutex_);
  check_size(count, bytes.size());
  check_range(first, saturating_add(first, count));
  const Target where = target();
  if (count > 0) next_row_ = std::max(next_row_, first + count);
  const Writing writing(*this, bytes.size());
  lock.unlock();
  put(where, first, count, bytes);
}

std::uint64_t ArrayFile::append(std::uint64_t count, std::span<const std::byte> bytes) {
  MutexLock lock(mutex_);
  while (alone_) changed_.wait(mutex_);
  check_size(count, bytes.size());
  const std::uint64_t first = next_row_;
  const std::uint64_t end = saturating_add(first, count);
  if (rows_) {
    check_range(first, end);
  } else {
    check_growth(end);
  }
  next_row_ = end;
  const Target where = target();
  const Writing writing(*this, bytes.size());
  lock.unlock();
  put(where, first, count, bytes);
  return first;
}

void ArrayFile::write_rows(const RowList& rows, std::span<const std::byte> bytes) {
  MutexLock lock(mutex_);
  while (alone_) changed_.wait(mutex_);
  const auto count = std::visit([](const auto& all) -> std::uint64_t { return all.size(); }, rows);
  check_size(count, bytes.size());
  std::uint64_t end = next_row_;
  const std::uint64_t limit = rows_now();
  const std::uint64_t least = committed_rows_;
  const std::span<const PartTicket> parts = parts_;
  const bool shared = own_part_ || !parts.empty();
  std::visit(
      [&](const auto& all) {
        for (const auto row : all) {
          // A negative number becomes a huge one, which is out of range too.
          const auto number = static_cast<std::uint64_t>(row);
          if (number >= limit) throw_no_row(std::to_string(row), limit);
          if (number < least) throw_committed(path_, number, least);
          if (shared) check_own(parts, number, number + 1);
          end = std::max(end, number + 1);
        }
      },
      rows);
  next_row_ = end;
  const Target where = target();
  const Writing writing(*this, bytes.size());
  lock.unlock();
  const MutexLock one_list(places_mutex_);
  std::vector<Place> places;
  places.reserve(std::min(count, places_));
  std::visit(
      [&](const auto& all) {
        for (std::size_t first = 0; first < all.size(); first += places_) {
          places.clear();
          const std::size_t last = std::min<std::size_t>(all.size(), first + places_);
          for (std::size_t i = first; i < last; ++i)
            places.push_back({static_cast<std::uint64_t>(all[i]), i});
          put_rows(where, places, bytes, count);
        }
      },
      rows);
}

// Sorted, because neighbours gather; of equal rows only the last counts.
void ArrayFile::put_rows(const Target& target, std::span<Place> places,
                         std::span<const std::byte> bytes, std::uint64_t count) {
  std::ranges::sort(places, [](const Place& a, const Place& b) {
    return a.row != b.row ? a.row < b.row : a.index < b.index;
  });
  const bool columns = target.rows != 0;
  const std::uint64_t size = columns ? target.item_bytes : target.row_bytes;
  if (size == 0) return;
  const std::uint64_t runs = columns ? target.row_bytes / size : 1;
  for (std::uint64_t run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (i + 1 < places.size() && places[i + 1].row == places[i].row) continue;
      gather_->write(target.data_bytes + (run * target.rows + places[i].row) * size,
                     bytes.subspan((run * count + places[i].index) * size, size));
    }
  }
}

}  // namespace lowtide

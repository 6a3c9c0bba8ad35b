#include "writer/array_file.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/checked.h"
#include "format/descr.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kKiB = 1 << 10;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kPlaceBytes = 16;

// Parts of the budget: a quarter for gathered rows, three sixteenths for pages on their way, up to
// sizes above which nothing gets faster.
std::uint64_t buffer_bytes(std::uint64_t memory_bytes) {
  return round_down(std::clamp(memory_bytes / 4 / Gather::kBuffers, 4 * kKiB, 4 * kMiB),
                    WriteFile::kBlockBytes);
}

std::uint64_t chunk_bytes(std::uint64_t memory_bytes) {
  return std::clamp(memory_bytes / 16, 64 * kKiB, 4 * kMiB);
}

std::uint64_t memory_of(const CreateOptions& options) {
  return options.memory_bytes != 0 ? options.memory_bytes : default_memory_bytes();
}

std::uint64_t row_bytes_of(const Layout& layout) {
  std::uint64_t bytes = layout.dtype.itemsize_bytes;
  for (std::size_t axis = 1; axis < layout.shape.size(); ++axis) bytes *= layout.shape[axis];
  return bytes;
}

// Whether a file to which rows are added is what the caller says. `dtype` may be nullptr.
void check_agrees(const Layout& layout, const DType* dtype, const CreateOptions& options,
                  const std::string& path) {
  std::vector<std::uint64_t> shape{0};
  if (options.row_shape)
    shape.insert(shape.end(), options.row_shape->begin(), options.row_shape->end());
  // A sub-array type has axes of its own.
  const Layout given =
      ArrayHeader(dtype != nullptr ? *dtype : layout.dtype, std::move(shape), false, path).layout();
  if (!(given.dtype == layout.dtype)) {
    throw std::invalid_argument(path + ": append: dtype is " + given.dtype.descr() +
                                ", but the file has " + layout.dtype.descr());
  }
  const std::span known = std::span(layout.shape).subspan(1);
  const std::span wanted = std::span(given.shape).subspan(1);
  if (options.row_shape && !std::ranges::equal(wanted, known)) {
    throw std::invalid_argument(path + ": append: rows have shape " + shape_text(wanted) +
                                ", but those of the file have " + shape_text(known));
  }
  if (options.rows.value_or(layout.shape[0]) < layout.shape[0]) {
    throw std::invalid_argument(path + ": append: the file has " + std::to_string(layout.shape[0]) +
                                " rows, more than " + std::to_string(*options.rows));
  }
}

}  // namespace

std::uint64_t ArrayFile::place_count() const {
  return std::clamp(budget_.limit_bytes() / 16, 4 * kKiB, kMiB) / kPlaceBytes;
}

void ArrayFile::claim_memory() {
  const std::uint64_t limit = budget_.limit_bytes();
  claims_ = budget_.claim_all(
      {{.what = "gathered rows", .bytes = Gather::kBuffers * buffer_bytes(limit)},
       {.what = "pages on their way to the disk", .bytes = 3 * chunk_bytes(limit)},
       {.what = "sorted row numbers", .bytes = places_ * kPlaceBytes}});
}

void ArrayFile::open_file(PublishedFile::Start start) {
  const std::uint64_t limit = budget_.limit_bytes();
  file_ = std::make_unique<PublishedFile>(path_, start, chunk_bytes(limit));
  gather_ = std::make_unique<Gather>(*file_, buffer_bytes(limit), budget_);
}

ArrayFile::ArrayFile(const std::string& path, const CreateOptions& options)
    : path_(path),
      budget_(memory_of(options)),
      fortran_order_(options.fortran_order),
      places_(place_count()) {
  check_array_name(path);
  if (options.dtype) dtype_ = parse_descr(*options.dtype);
  if (fortran_order_ && !options.rows)
    throw std::invalid_argument("order F: the number of rows must be known; give the whole shape");
  claim_memory();
  using Start = PublishedFile::Start;
  if (!options.append && !options.dtype)
    throw std::invalid_argument(path + ": dtype is missing; give the type of the elements");
  open_file(options.append ? Start::go_on_any : Start::anew);
  const MutexLock lock(mutex_);
  rows_ = options.rows;
  if (file_->published()) {
    go_on(options);
    return;
  }
  if (!options.dtype) {
    throw std::invalid_argument(path + ": there is no such file to append to; give dtype to " +
                                "create one");
  }
  if (options.row_shape) make_header(*options.row_shape);
}

void ArrayFile::go_on(const CreateOptions& options) {
  if (fortran_order_)
    throw std::invalid_argument("order F: rows cannot be appended to a file in Fortran order");
  const ReadStart read = [this](std::uint64_t offset_bytes, std::span<std::byte> out) {
    file_->read_exact(offset_bytes, out);
  };
  header_ = ArrayHeader::of_file(file_->size_bytes(), read, path_);
  const Layout& layout = header_->layout();
  check_agrees(layout, options.dtype ? &dtype_ : nullptr, options, path_);
  dtype_ = layout.dtype;
  row_bytes_ = row_bytes_of(layout);
  next_row_ = committed_rows_ = layout.shape[0];
  if (rows_) check_growth(*rows_);
  kept_bytes_ = header_->size_bytes() + layout.data_bytes;
  // What a crash left behind the rows: it must not show through rows that nobody writes.
  if (file_->size_bytes() > kept_bytes_) file_->resize(kept_bytes_);
}

void ArrayFile::make_header(std::vector<std::uint64_t> row_shape) {
  row_shape.insert(row_shape.begin(), rows_.value_or(0));
  header_.emplace(dtype_, std::move(row_shape), fortran_order_, path_);
  const Layout& layout = header_->layout();
  dtype_ = layout.dtype;
  row_bytes_ = row_bytes_of(layout);
}

std::vector<std::uint64_t> ArrayFile::shape() const {
  const MutexLock lock(mutex_);
  std::vector<std::uint64_t> shape{0};
  if (header_) shape = header_->layout().shape;
  shape[0] = rows_now();
  return shape;
}

std::uint64_t ArrayFile::rows() const {
  const MutexLock lock(mutex_);
  return rows_now();
}

std::uint64_t ArrayFile::next_row() const {
  const MutexLock lock(mutex_);
  return next_row_;
}

std::uint64_t ArrayFile::row_bytes() const {
  const MutexLock lock(mutex_);
  return row_bytes_;
}

bool ArrayFile::has_row_shape() const {
  const MutexLock lock(mutex_);
  return header_.has_value();
}

bool ArrayFile::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

void ArrayFile::set_row_shape(std::vector<std::uint64_t> row_shape) {
  const MutexLock lock(mutex_);
  check_open();
  if (!header_) return make_header(std::move(row_shape));
  const std::vector<std::uint64_t>& known = header_->layout().shape;
  if (!std::equal(row_shape.begin(), row_shape.end(), known.begin() + 1, known.end())) {
    throw std::invalid_argument(path_ + ": rows have shape " +
                                shape_text(std::span(known).subspan(1)) + ", not " +
                                shape_text(row_shape));
  }
}

WriteStats ArrayFile::stats() const {
  const MutexLock lock(mutex_);
  WriteStats stats = last_stats_;
  stats.bytes_given = bytes_given_;
  stats.wait_ns = wait_ns_;
  if (gather_) {
    stats.bytes_written = gather_->bytes_written();
    stats.writes = gather_->writes();
  }
  stats.memory_limit_bytes = budget_.limit_bytes();
  for (const Budget::Entry& claim : budget_.claims())
    stats.memory_claims.emplace_back(claim.what, claim.bytes);
  return stats;
}

}  // namespace lowtide

#include "dataset/rows.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "core/checked.h"
#include "core/hash.h"
#include "dataset/append_read.h"
#include "lowtide/error.h"

namespace lowtide {
namespace {

// Whether the samples are adjacent both in the data and in memory.
bool in_a_row(std::span<const std::uint64_t> samples, std::span<std::byte* const> targets,
              std::uint64_t row_bytes) {
  for (std::size_t i = 1; i < samples.size(); ++i) {
    if (samples[i] != samples[i - 1] + 1 || targets[i] != targets[i - 1] + row_bytes) return false;
  }
  return !samples.empty();
}

// NumPy writes these as C order, even if the files beside them are in Fortran order.
bool alike_in_both_orders(const std::vector<std::uint64_t>& shape) {
  return std::ranges::count_if(shape, [](std::uint64_t extent) { return extent > 1; }) <= 1 ||
         std::ranges::find(shape, 0U) != shape.end();
}

}  // namespace

Rows::Rows(const std::vector<RowsFile>& files) {
  if (files.empty()) throw std::invalid_argument("an array needs at least one file");
  for (const RowsFile& file : files) add(file);
}

Rows::Rows(const Layout& layout, ChunkTable table, std::shared_ptr<Shards> shards)
    : dtype_(layout.dtype),
      shape_(layout.shape),
      rows_(layout.shape.empty() ? 1 : layout.shape[0]),
      row_bytes_(layout.data_bytes / rows_),
      chunks_(std::make_shared<const ChunkGrid>(layout, std::move(table), *shards)),
      shards_(std::move(shards)) {
  columns_ = chunks_->parts();
}

void Rows::add(const RowsFile& file) {
  const Layout& layout = file.layout;
  if (stretches_.empty()) {
    dtype_ = layout.dtype;
    shape_ = layout.shape;
    fortran_order_ = layout.fortran_order;
    checksum_ = layout.checksum;
  }
  check_joins(file);
  const std::uint64_t rows = layout.shape.empty() ? 1 : layout.shape[0];
  shards_->add(file.shard);
  stretches_.push_back({rows_, rows, layout.data_offset_bytes, 1, layout.row_prefix.size(),
                        static_cast<std::uint32_t>(shards_->size() - 1)});
  if (!layout.row_prefix.empty()) {
    has_gaps_ = true;
    row_prefix_ = layout.row_prefix;
  }
  rows_ += rows;
  if (!shape_.empty()) shape_[0] = rows_;
  std::uint64_t elements = 1;
  for (std::size_t axis = 1; axis < shape_.size(); ++axis) elements *= shape_[axis];
  row_bytes_ = elements * dtype_.itemsize_bytes;
  columns_ = fortran_order_ && elements > 1 && row_bytes_ > 0 ? elements : 1;
}

void Rows::add_stretch(std::uint64_t offset_bytes, std::uint64_t rows) {
  stretches_.push_back({rows_, rows, offset_bytes, 1, 0, stretches_.back().shard});
  rows_ += rows;
  shape_[0] = rows_;
}

// Throws FormatError unless the file fits those before it, if there are any.
void Rows::check_joins(const RowsFile& file) {
  const Layout& layout = file.layout;
  const bool is_first = stretches_.empty();
  const auto differs = [&](const std::string& what, std::size_t other, const std::string& has) {
    throw FormatError(file.shard.path + ": " + what + ", but " +
                      path(static_cast<std::uint32_t>(other)) + " has " + has);
  };
  if (!(layout.dtype == dtype_)) {
    differs("dtype is " + layout.dtype.descr(), 0, dtype_.descr());
  }
  const bool joinable =
      is_first || (layout.shape.size() == shape_.size() && !shape_.empty() &&
                   std::equal(shape_.begin() + 1, shape_.end(), layout.shape.begin() + 1));
  if (!joinable) {
    std::vector<std::uint64_t> first_shape = shape_;
    if (!first_shape.empty()) first_shape[0] = stretches_[0].rows;
    differs("shape is " + shape_text(layout.shape), 0,
            shape_text(first_shape) +
                "; files are joined along the first axis, so all others must be equal");
  }
  if (alike_in_both_orders(layout.shape)) return;
  if (!ordered_) {
    ordered_ = stretches_.size();
    fortran_order_ = layout.fortran_order;
  }
  if (layout.fortran_order != fortran_order_) {
    differs(std::string("order is ") + (layout.fortran_order ? "F" : "C"), *ordered_,
            fortran_order_ ? "F" : "C");
  }
}

std::uint64_t Rows::held_bytes() const {
  return shards_->held_bytes() + stretches_.capacity() * sizeof(Stretch) +
         (chunks_ ? chunks_->held_bytes() : 0);
}

std::uint64_t Rows::reads_per_part() const noexcept {
  return columns_ > 1 && fortran_order_
             ? 1
             : std::max<std::uint64_t>(1, (row_bytes_ + kMostReadBytes - 1) / kMostReadBytes);
}

std::size_t Rows::stretch_of(std::uint64_t row) const {
  if (stretches_.size() == 1) return 0;
  const auto after = std::upper_bound(
      stretches_.begin(), stretches_.end(), row,
      [](std::uint64_t r, const Stretch& stretch) { return r < stretch.first_row; });
  return static_cast<std::size_t>(after - stretches_.begin() - 1);
}

// Columns are in the file with the second axis varying fastest; in a delivered row the last axis
// does.
std::uint64_t Rows::column_target_bytes(std::uint64_t column) const {
  std::uint64_t element = 0, stride = row_bytes_ / dtype_.itemsize_bytes;
  for (std::size_t axis = 1; axis < shape_.size(); ++axis) {
    stride /= shape_[axis];
    element += column % shape_[axis] * stride;
    column /= shape_[axis];
  }
  return element * dtype_.itemsize_bytes;
}

std::uint64_t Rows::layout_hash() const {
  const std::string type = dtype_.descr();
  std::uint64_t hash = hash_with(fortran_order_ ? 1 : 0, std::as_bytes(std::span(type)));
  hash = hash_with(hash, std::as_bytes(std::span(shape_)));
  const std::vector<std::uint64_t> files = file_rows();
  return hash_with(hash, std::as_bytes(std::span(files)));
}

std::vector<std::uint64_t> Rows::file_rows() const {
  if (chunks_) return {rows_};
  std::vector<std::uint64_t> all;
  for (const Stretch& stretch : stretches_) {
    all.resize(stretch.shard + 1);
    all[stretch.shard] += stretch.rows;
  }
  return all;
}

std::uint64_t Rows::most_reads(std::uint64_t count) const {
  if (chunks_) {
    return saturating_add(chunks_->most_runs(count * row_bytes_), count * row_bytes_ / kJoinBytes);
  }
  if (has_gaps_) return count * (row_bytes_ / kJoinBytes + 1);
  const std::uint64_t crossed = std::min<std::uint64_t>(count, stretches_.size());
  return crossed + count * row_bytes_ / kJoinBytes + 1;
}

std::uint64_t Rows::rows_for(std::uint64_t reads) const {
  if (chunks_ == nullptr) return has_gaps_ ? reads : std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = 0;
  if (!checked_mul(reads, chunks_->mean_run_bytes(), &bytes)) bytes = UINT64_MAX;
  return std::max<std::uint64_t>(1, bytes / row_bytes_);
}

Rows Rows::from_shard(std::uint32_t first_shard) const {
  Rows rows = *this;
  rows.first_shard_ = first_shard;
  return rows;
}

Rows Rows::flat() const {
  if (chunks_) {
    Rows all = *this;
    all.row_bytes_ = dtype_.itemsize_bytes;
    all.rows_ = data_bytes() / all.row_bytes_;
    all.shape_ = {all.rows_};
    all.columns_ = 1;
    return all;
  }
  Rows all;
  const std::uint64_t item = dtype_.itemsize_bytes;
  const std::uint64_t elements = item == 0 ? 1 : std::max<std::uint64_t>(1, row_bytes_ / item);
  for (const Stretch& stretch : stretches_) {
    const std::uint64_t count = stretch.rows * row_bytes_ / std::max<std::uint64_t>(1, item);
    if (stretch.shard < all.shards_->size()) {
      all.add_stretch(stretch.data_offset_bytes, count);
    } else {
      Layout layout;
      layout.dtype = dtype_;
      layout.data_bytes = stretch.rows * row_bytes_;
      layout.shape = {count};
      layout.data_offset_bytes = stretch.data_offset_bytes;
      all.add({std::move(layout), (*shards_)[stretch.shard]});
    }
    all.stretches_.back().gap_bytes = stretch.gap_bytes;
    all.stretches_.back().run_rows = stretch.run_rows * elements;
  }
  all.has_gaps_ = has_gaps_;
  all.row_prefix_ = row_prefix_;
  return all;
}

void Rows::locate(std::size_t /*field*/, std::uint64_t part, std::span<const std::uint64_t> samples,
                  std::span<std::byte* const> targets, std::vector<Read>& out) const {
  if (chunks_) return locate_chunks(part, samples, targets, out);
  if (columns_ == 1) {
    if (row_bytes_ <= kJoinBytes && in_a_row(samples, targets, row_bytes_)) {
      locate_run(samples.front(), samples.size(), targets.front(), out);
    } else {
      locate_inside(0, row_bytes_, samples, targets, out);
    }
    return;
  }
  const std::uint64_t item = dtype_.itemsize_bytes;
  const std::uint64_t inside = column_target_bytes(part);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Stretch& stretch = stretches_[stretch_of(samples[i])];
    const std::uint64_t cell = part * stretch.rows + (samples[i] - stretch.first_row);
    append_read(first_shard_ + stretch.shard, stretch.data_offset_bytes + cell * item, item,
                targets[i] + inside, out);
  }
}

void Rows::locate_chunks(std::uint64_t part, std::span<const std::uint64_t> samples,
                         std::span<std::byte* const> targets, std::vector<Read>& out) const {
  if (columns_ == 1 && row_bytes_ <= kJoinBytes && in_a_row(samples, targets, row_bytes_))
    return locate_run(samples.front(), samples.size(), targets.front(), out);
  const ChunkGrid::Part run = columns_ == 1 ? ChunkGrid::Part{0, row_bytes_} : chunks_->part(part);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    chunks_->locate(samples[i] * row_bytes_ + run.offset_bytes, run.size_bytes, kMostReadBytes,
                    first_shard_, targets[i] + run.offset_bytes, out);
  }
}

SampleField Rows::field(std::size_t /*number*/) const noexcept {
  return {.unit_bytes = row_bytes_,
          .kind = dtype_.byte_order == '>' ? 'V' : dtype_.kind,
          .item_bytes = std::max<std::uint64_t>(1, dtype_.itemsize_bytes)};
}

void Rows::locate_run(std::uint64_t first, std::uint64_t count, std::byte* target,
                      std::vector<Read>& out) const {
  if (chunks_) {
    return chunks_->locate(first * row_bytes_, count * row_bytes_, kJoinBytes, first_shard_, target,
                           out);
  }
  while (count > 0) {
    const Stretch& stretch = stretches_[stretch_of(first)];
    const std::uint64_t row = first - stretch.first_row;
    std::uint64_t here = std::min(count, stretch.rows - row);
    if (stretch.gap_bytes > 0) here = std::min(here, stretch.run_rows - row % stretch.run_rows);
    std::uint64_t offset = offset_of(stretch, row);
    for (std::uint64_t left = here * row_bytes_; left > 0;) {
      const std::uint64_t now = std::min(left, kJoinBytes);
      append_read(first_shard_ + stretch.shard, offset, now, target, out);
      offset += now;
      target += now;
      left -= now;
    }
    first += here;
    count -= here;
  }
}

void Rows::locate_inside(std::uint64_t offset_bytes, std::uint64_t size_bytes,
                         std::span<const std::uint64_t> samples,
                         std::span<std::byte* const> targets, std::vector<Read>& out) const {
  if (chunks_) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      chunks_->locate(samples[i] * row_bytes_ + offset_bytes, size_bytes, kMostReadBytes,
                      first_shard_, targets[i], out);
    }
    return;
  }
  const Stretch* stretch = stretches_.data();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    // Mostly in the same stretch as the sample before. For a row before that stretch the difference
    // wraps and fails the test too.
    if (samples[i] - stretch->first_row >= stretch->rows)
      stretch = &stretches_[stretch_of(samples[i])];
    append_read(first_shard_ + stretch->shard,
                offset_of(*stretch, samples[i] - stretch->first_row) + offset_bytes, size_bytes,
                targets[i], out);
  }
}

}  // namespace lowtide

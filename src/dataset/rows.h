// rows.h - the rows of an array in one or several files, joined along the first axis, or in chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/shards.h"
#include "dataset/chunk_grid.h"
#include "dataset/dataset.h"
#include "format/layout.h"

namespace lowtide {

// One file of the array.
struct RowsFile {
  Layout layout;
  Shard shard;
};

// In C order a row is one contiguous range of the file. In Fortran order the elements of a row are
// a whole column apart, so each element is one part. `locate` for one part of many rows then gives
// reads that are close together in one column. In chunks that do not span whole rows, a part is
// what one chunk has of a row in one place.
//
// Chunks may be in any order in their files. Sorted samples are then sorted only within a chunk:
// the engine sorts every set of reads again, so fewer neighbours may be fetched together.
class Rows final : public Dataset {
 public:
  // Starts without files; they must be added before the first use. A 0-d array is one row.
  Rows() = default;
  // Files must agree in dtype, order and all axes but the first. Throws FormatError, which names
  // the first one that does not, and std::invalid_argument if their number exceeds 32 bits.
  void add(const RowsFile& file);
  // More rows that are elsewhere in the last file. Requires that they are inside of it, and C
  // order.
  void add_stretch(std::uint64_t offset_bytes, std::uint64_t rows);
  explicit Rows(const std::vector<RowsFile>& files);
  // An array in chunks, to which no files are added. The offset of the layout has no meaning.
  // Requires layout.data_bytes > 0. Throws as ChunkGrid.
  Rows(const Layout& layout, ChunkTable table, std::shared_ptr<Shards> shards);

  [[nodiscard]] std::uint64_t size() const noexcept override { return rows_; }
  [[nodiscard]] std::uint64_t sample_bytes() const noexcept override { return row_bytes_; }
  [[nodiscard]] std::uint64_t parts() const noexcept override { return columns_; }
  [[nodiscard]] std::uint64_t reads_per_part() const noexcept override;
  [[nodiscard]] std::uint64_t data_bytes() const noexcept override { return rows_ * row_bytes_; }
  [[nodiscard]] std::string path(std::uint32_t shard) const override {
    return shards_->path(shard - first_shard_);
  }
  [[nodiscard]] SampleField field(std::size_t number) const noexcept override;
  void locate(std::size_t field, std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override;

  // Appends few long reads that bring rows first .. first + count - 1 to `target`. Not in Fortran
  // order.
  void locate_run(std::uint64_t first, std::uint64_t count, std::byte* target,
                  std::vector<Read>& out) const;

  // The most reads that locate_run makes for this many rows.
  [[nodiscard]] std::uint64_t most_reads(std::uint64_t count) const;
  // For how many rows locate_run makes about this many reads, beside those that it makes of long
  // ranges. At least 1.
  [[nodiscard]] std::uint64_t rows_for(std::uint64_t reads) const;

  // The same for bytes [offset, offset + size) of each row. Not in Fortran order.
  void locate_inside(std::uint64_t offset_bytes, std::uint64_t size_bytes,
                     std::span<const std::uint64_t> samples, std::span<std::byte* const> targets,
                     std::vector<Read>& out) const;

  // A hash of the dtype, the shape, the order of elements and the rows of each file.
  [[nodiscard]] std::uint64_t layout_hash() const;

  // The chunks, or nullptr.
  [[nodiscard]] const ChunkGrid* chunks() const { return chunks_.get(); }
  // In how many places its rows are, if they are not in chunks.
  [[nodiscard]] std::size_t stretches() const { return stretches_.size(); }
  // Where the first row is in the first file. C order only, not in chunks.
  [[nodiscard]] std::uint64_t first_offset_bytes() const { return stretches_[0].data_offset_bytes; }
  // Whether there are bytes between the rows of a file that belong to none of them.
  [[nodiscard]] bool has_gaps() const { return has_gaps_; }
  // Layout::row_prefix of the files that have one.
  [[nodiscard]] const std::string& row_prefix() const { return row_prefix_; }

  // Layout::checksum of the first file.
  [[nodiscard]] const std::optional<Checksum>& checksum() const { return checksum_; }

  // How many rows each file has; of an array in chunks, how many it has.
  [[nodiscard]] std::vector<std::uint64_t> file_rows() const;
  // The same rows as one of several arrays whose files are numbered together.
  [[nodiscard]] Rows from_shard(std::uint32_t first_shard) const;
  // All elements on one axis, in file order, one file after the other; in chunks, in C order.
  [[nodiscard]] Rows flat() const;

  [[nodiscard]] const DType& dtype() const { return dtype_; }
  [[nodiscard]] const std::vector<std::uint64_t>& shape() const { return shape_; }
  [[nodiscard]] bool fortran_order() const { return fortran_order_; }
  [[nodiscard]] std::shared_ptr<const Shards> shards() const { return shards_; }
  // The bytes held that grow with the number of files, including their names, and of chunks. Copies
  // of these rows, and flat(), share the table of chunks.
  [[nodiscard]] std::uint64_t held_bytes() const;

 private:
  // Rows that are in one place of a file; mostly all of its rows.
  struct Stretch {
    std::uint64_t first_row, rows, data_offset_bytes;
    std::uint64_t run_rows;   // that touch, before a gap
    std::uint64_t gap_bytes;  // after them; 0: all rows touch
    std::uint32_t shard;
  };
  // Where row `row` of this stretch starts. Requires that it has such a row.
  [[nodiscard]] std::uint64_t offset_of(const Stretch& stretch, std::uint64_t row) const {
    const std::uint64_t packed = stretch.data_offset_bytes + row * row_bytes_;
    return stretch.gap_bytes == 0 ? packed : packed + row / stretch.run_rows * stretch.gap_bytes;
  }
  void check_joins(const RowsFile& file);
  void locate_chunks(std::uint64_t part, std::span<const std::uint64_t> samples,
                     std::span<std::byte* const> targets, std::vector<Read>& out) const;
  [[nodiscard]] std::size_t stretch_of(std::uint64_t row) const;
  [[nodiscard]] std::uint64_t column_target_bytes(std::uint64_t column) const;

  DType dtype_;
  std::vector<std::uint64_t> shape_;
  bool fortran_order_ = false;
  std::uint64_t rows_ = 0;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t columns_ = 1;  // parts of a row: 1 in C order
  std::vector<Stretch> stretches_;
  std::shared_ptr<const ChunkGrid> chunks_;  // instead of stretches_
  bool has_gaps_ = false;
  std::string row_prefix_;
  std::optional<Checksum> checksum_;
  std::shared_ptr<Shards> shards_ = std::make_shared<Shards>();
  std::uint32_t first_shard_ = 0;       // the number of the first file
  std::optional<std::size_t> ordered_;  // the first file whose order matters
};

}  // namespace lowtide

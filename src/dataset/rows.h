// rows.h - the rows of an array that lies in one file or in several, joined along the first axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/shards.h"
#include "dataset/dataset.h"
#include "format/layout.h"

namespace lowtide {

// One file's share of the rows.
struct RowsPart {
  Layout layout;
  Shard shard;
};

// C order: a row is one piece of the file. Fortran order: the elements of a row lie a whole column
// apart, so a row is made of row elements, one part each; `locate` for one part of many rows gives
// reads that lie dense in one column.
class Rows final : public Dataset {
 public:
  // Without files: they are added before the first use. A 0-d array is one row.
  Rows() = default;
  // Parts agree in dtype, order and all axes but the first; throws FormatError that names the first
  // that does not. Throws std::invalid_argument for more parts than 32 bits count.
  void add(const RowsPart& part);
  explicit Rows(const std::vector<RowsPart>& parts);

  [[nodiscard]] std::uint64_t size() const noexcept override { return rows_; }
  [[nodiscard]] std::uint64_t sample_bytes() const noexcept override { return row_bytes_; }
  [[nodiscard]] std::uint64_t parts() const noexcept override { return columns_; }
  [[nodiscard]] std::uint64_t reads_per_part() const noexcept override;
  [[nodiscard]] std::uint64_t data_bytes() const noexcept override { return rows_ * row_bytes_; }
  [[nodiscard]] std::string path(std::uint32_t shard) const override {
    return shards_->path(shard);
  }
  void locate(std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override;

  // Rows first .. first + count - 1 to one place, as few long reads. C order only.
  void locate_run(std::uint64_t first, std::uint64_t count, std::byte* target,
                  std::vector<Read>& out) const;

  // Bytes [offset, offset + size) of each row. C order only.
  void locate_inside(std::uint64_t offset_bytes, std::uint64_t size_bytes,
                     std::span<const std::uint64_t> samples, std::span<std::byte* const> targets,
                     std::vector<Read>& out) const;

  // How many rows each file has.
  [[nodiscard]] std::vector<std::uint64_t> file_rows() const;
  // The elements along one axis: each file's in file order, one file behind the other.
  [[nodiscard]] Rows flat() const;

  [[nodiscard]] const DType& dtype() const { return dtype_; }
  [[nodiscard]] const std::vector<std::uint64_t>& shape() const { return shape_; }
  [[nodiscard]] bool fortran_order() const { return fortran_order_; }
  [[nodiscard]] std::shared_ptr<const Shards> shards() const { return shards_; }
  // What grows with the number of files, their names included.
  [[nodiscard]] std::uint64_t held_bytes() const;

 private:
  struct Piece {
    std::uint64_t first_row, rows, data_offset_bytes;
  };
  void check(const RowsPart& part);
  [[nodiscard]] std::uint32_t piece_of(std::uint64_t row) const;
  [[nodiscard]] std::uint64_t column_target_bytes(std::uint64_t column) const;

  DType dtype_;
  std::vector<std::uint64_t> shape_;
  bool fortran_order_ = false;
  std::uint64_t rows_ = 0;
  std::uint64_t row_bytes_ = 0;
  std::uint64_t columns_ = 1;  // parts of a row: 1 in C order
  std::vector<Piece> pieces_;
  std::shared_ptr<Shards> shards_ = std::make_shared<Shards>();
  std::optional<std::size_t> ordered_;  // the first file of which the order matters
};

}  // namespace lowtide

// picked.h - some columns of a sparse matrix: which of the indices of a row are theirs, and where
// in a dense row of only these columns the values go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/token_type.h"

namespace lowtide {

// Which code finds indices, the best one last. All give the same results. One that this processor
// cannot run stands for the best that it can.
enum class PickKernel : std::uint8_t { kPortable, kAvx2, kAvx512 };

// Immutable. Any thread. Takes about 4 bytes per column of the matrix and per picked column.
class PickedColumns {
 public:
  // Throws std::out_of_range for a picked column that does not exist, and std::invalid_argument for
  // 2^31 columns or more.
  PickedColumns(std::uint64_t columns, const std::vector<std::uint64_t>& picked);

  [[nodiscard]] std::uint64_t width() const { return next_place_.size(); }

  // Indices of picked columns: which of those that were looked at, and the first place of their
  // column in a dense row. As long as the longest row so far, and kept from row to row.
  struct Hits {
    std::vector<std::uint32_t> at;
    std::vector<std::int32_t> place;
  };
  // A row as it is stored: fewer than 2^32 indices, all of them below `columns`. Of the values only
  // the address matters: they and what follows them are prefetched, because rows are mostly read
  // one after the other.
  struct Row {
    const std::byte* indices = nullptr;
    const std::byte* values = nullptr;
    std::size_t value_bytes = 0;  // of one, at most 8
    std::size_t count = 0;
  };
  // Finds the picked ones of the indices. Returns how many there are; they come in the order of the
  // indices.
  std::size_t find(TokenType type, const Row& row, Hits& hits,
                   PickKernel kernel = PickKernel::kAvx512) const;

  // Whether a column is picked more than once.
  [[nodiscard]] bool repeated() const { return repeated_; }
  // The next place of the column that is at this place, or -1.
  [[nodiscard]] std::int32_t next_place(std::int32_t place) const {
    return next_place_[static_cast<std::size_t>(place)];
  }

 private:
  // One bit per column, the highest of a word first, and a window of zeros after the last.
  std::vector<std::uint32_t> wanted_;
  std::vector<std::int32_t> first_place_, next_place_;
  bool repeated_ = false;
};

}  // namespace lowtide

// direct.h - upcoming batches that are read directly into their buffers, several together in file
// order. The kernel finds the pages of cached rows faster that way, and a disk reads them faster.
//
// The counterpart of Staging for bytes that are in memory, or too far apart to merge. Used by one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataset/dataset.h"
#include "loader/pool.h"
#include "order/order.h"

namespace lowtide {

class Direct {
 public:
  // Bookkeeping bytes per row of a group.
  static constexpr std::uint64_t kRowOverheadBytes = 2 * sizeof(std::uint64_t);

  Direct(const Dataset& dataset, const Order& order)
      : dataset_(dataset), order_(order), part_(dataset.parts()) {}

  // Makes the batches in `buffers`, whose samples are filled in, the group that is read next. With
  // `sort` the rows are read in file order. Rows go to the buffers from `offset_bytes` on. Only the
  // last batch may be shorter than the first. All of the previous group must have been submitted.
  void plan(std::span<Buffer* const> buffers, std::uint64_t offset_bytes, bool sort);

  [[nodiscard]] bool exhausted() const { return part_ == dataset_.parts(); }

  // The next piece of at most `most` rows; a row counts once per part. Returns the rows, their
  // targets and their reads.
  void take_piece(std::uint64_t most, std::vector<std::uint64_t>* samples,
                  std::vector<std::byte*>* targets, std::vector<Read>* reads);

 private:
  void take_rows(std::uint64_t most, std::vector<std::uint64_t>* samples,
                 std::vector<std::byte*>* targets) const;

  const Dataset& dataset_;
  const Order& order_;
  std::vector<std::byte*> rows_;  // where the rows of each batch start
  std::uint64_t batch_size_ = 1;
  unsigned place_bits_ = 0;                    // 0: keys_ are samples in the order of their places
  std::vector<std::uint64_t> keys_, scratch_;  // sample << place_bits_ | place in the group
  std::uint64_t part_ = 0;                     // the part to submit next
  std::uint64_t submitted_ = 0;                // rows of that part
};

}  // namespace lowtide

// direct.h - coming batches that are read straight into their buffers, several together in the
// order in which their rows lie: the kernel finds the pages of cached rows faster that way, and a
// disk likes it too.
//
// The sister of Staging for bytes that are in memory, or too far apart to merge. Used by one
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
  // Bookkeeping bytes that come with each row of a group.
  static constexpr std::uint64_t kRowOverheadBytes = 2 * sizeof(std::uint64_t);

  Direct(const Dataset& dataset, const Order& order)
      : dataset_(dataset), order_(order), part_(dataset.parts()) {}

  // Makes the batches in `buffers`, whose samples are filled in, the group that is read next, in
  // the order in which the rows lie if `sort` and the order is not that already. Rows go to the
  // buffers from `offset_bytes` on. Only the last may be shorter than the first. All of the
  // previous group must be submitted.
  void plan(std::span<Buffer* const> buffers, std::uint64_t offset_bytes, bool sort);

  [[nodiscard]] bool exhausted() const { return part_ == dataset_.parts(); }

  // The next piece of at most `most` rows, each as often as it has parts in the piece: which they
  // are, where they go, and their reads.
  void take_piece(std::uint64_t most, std::vector<std::uint64_t>* samples,
                  std::vector<std::byte*>* targets, std::vector<Read>* reads);

 private:
  void take_rows(std::uint64_t most, std::vector<std::uint64_t>* samples,
                 std::vector<std::byte*>* targets) const;

  const Dataset& dataset_;
  const Order& order_;
  std::vector<std::byte*> rows_;  // of each batch
  std::uint64_t batch_size_ = 1;
  unsigned place_bits_ = 0;                    // 0: keys_ are samples in the order of their places
  std::vector<std::uint64_t> keys_, scratch_;  // sample << place_bits_ | place in the group
  std::uint64_t part_ = 0;                     // to be submitted next
  std::uint64_t submitted_ = 0;                // rows of that part
};

}  // namespace lowtide

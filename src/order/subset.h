// subset.h - an order over some of the rows: which rows those are, and in which order they come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "order/order.h"

namespace lowtide {

// Some of the rows 0 .. limit - 1, in any order; a list may name a row more than once. A list is
// borrowed: it must outlive the Subset and stay unchanged. Immutable; any thread.
class Subset {
 public:
  // Throws std::out_of_range, which names the first entry that is not below the limit and its
  // value, and std::invalid_argument if there are no rows or the step is 0. A list is read once; a
  // range costs O(1) and requires limit <= 2^63.
  Subset(const RowSelection& rows, std::uint64_t limit);

  [[nodiscard]] std::uint64_t size() const noexcept;
  [[nodiscard]] std::uint64_t operator[](std::uint64_t index) const noexcept;  // index < size()
  // Replaces every index, all of them below size(), by its row.
  void map(std::span<std::uint64_t> indices) const noexcept;
  // The least index of a row; nullopt if the row is not included. O(1) for a range; searches a
  // list.
  [[nodiscard]] std::optional<std::uint64_t> index_of(std::uint64_t row) const noexcept;
  // The memory of a list.
  [[nodiscard]] std::uint64_t list_bytes() const noexcept;
  // Whether each row is the successor of the one before it. Only a range is known to be.
  [[nodiscard]] bool contiguous() const noexcept;

  // Extends `seed` by the rows, whatever describes them: a list of evenly spaced rows has the hash
  // of its range. O(1) for a range. Reads a list once or, if it begins evenly spaced, twice:
  // about a second per 1e8 rows, so call it only for a state.
  [[nodiscard]] std::uint64_t hash(std::uint64_t seed) const noexcept;

 private:
  using Rows = std::variant<RowRange, std::span<const std::int64_t>, std::span<const std::uint64_t>,
                            std::span<const std::int32_t>, std::span<const std::uint32_t>>;

  Rows rows_;
};

// The row at a position is rows[inner's sample there]. Requires an inner order whose samples are
// below rows.size(). It has as many positions as `inner`, is sequential if `inner` is and the rows
// are contiguous, and knows the positions that `inner` knows: for a row that is listed more than
// once, that of its first entry.
[[nodiscard]] std::unique_ptr<Order> make_subset(Subset rows, std::unique_ptr<Order> inner);

}  // namespace lowtide

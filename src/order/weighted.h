// weighted.h - samples drawn with replacement by weight: a pure function of (table, seed, epoch,
// position).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "order/order.h"

namespace lowtide {

// Walker's alias table: as many columns as weights, all equally likely. A column holds one sample
// below its threshold and another one above it, so a draw reads a single column.
//
// Building it is integer arithmetic on the bits of the weights: equal weights give equal tables on
// every machine and in every version. The probability of a sample is its weight divided by the sum
// of all, to within about 2^-32 of a column. A weight below 2^-63 of the largest counts as 0, and a
// weight of 0 is never drawn.
//
// Immutable: any thread may use it, and so may a forked child.
class AliasTable {
 public:
  static constexpr std::uint64_t kMostWeights = (std::uint64_t{1} << 32) - 1;

  struct Column {
    std::uint32_t threshold;  // of 2^32 fractions, those that draw the column's own sample
    std::uint32_t alias;      // the sample that the others draw
  };

  // Takes 1 .. kMostWeights weights, each finite and at least 0, and one of them above 0. Otherwise
  // throws std::invalid_argument, which names the first wrong entry and its value, before it
  // allocates. Only the ratios of weights count. O(count) time, in sequential passes; nothing is
  // allocated but the table. The weights must not change during the call, and are not needed after
  // it.
  explicit AliasTable(std::span<const double> weights);

  [[nodiscard]] std::uint64_t size() const noexcept { return columns_.size(); }
  [[nodiscard]] std::span<const Column> columns() const noexcept { return columns_; }

  // The memory of a table of this many weights.
  [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t count) noexcept {
    return count * sizeof(Column);
  }

 private:
  std::vector<Column> columns_;
};

// `positions` draws per epoch from 0 .. table->size() - 1. O(1) at any position; any thread;
// position_of returns nullopt. The size of the table is part of the key but `positions` is not, so
// a longer epoch begins with the same draws. The values never change between versions, as with
// make_shuffle.
[[nodiscard]] std::unique_ptr<Order> make_weighted(std::shared_ptr<const AliasTable> table,
                                                   std::uint64_t positions, std::uint64_t seed);

}  // namespace lowtide

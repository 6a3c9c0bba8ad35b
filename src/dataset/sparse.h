// sparse.h - rows of a sparse matrix, stored as values and the columns they are in, become dense.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/token_type.h"
#include "dataset/picked.h"
#include "lowtide/dtype.h"

namespace lowtide {

enum class DenseType : std::uint8_t { f16, f32, f64 };
// NumPy's names; nullopt for another one.
[[nodiscard]] std::optional<DenseType> dense_type_named(std::string_view name);

// The place of the first of `count` integers that is not in 0 .. below - 1; `count` if all are.
[[nodiscard]] std::size_t first_not_below(TokenType type, const std::byte* integers,
                                          std::size_t count, std::uint64_t below);

// Throws FormatError for integers[place], an index that is not below `columns`.
[[noreturn]] void throw_wrong_index(const std::string& path, std::uint64_t row, TokenType type,
                                    const std::byte* integers, std::size_t place,
                                    std::uint64_t columns);

// Immutable. Any thread.
class DenseRows {
 public:
  // Rows of `columns` columns; `picked`: only these of them, in this order, with repetitions.
  // Throws std::invalid_argument for values that are not numbers in this machine's byte order, and
  // std::out_of_range for a picked column that does not exist.
  DenseRows(const DType& values, TokenType indices, std::uint64_t columns, DenseType to,
            const std::optional<std::vector<std::uint64_t>>& picked);

  // Elements of a row.
  [[nodiscard]] std::uint64_t width() const { return picked_ ? picked_->width() : columns_; }
  [[nodiscard]] std::uint64_t item_bytes() const;
  [[nodiscard]] std::uint64_t row_bytes() const { return width() * item_bytes(); }

  // What fill() needs beside its arguments; kept from row to row.
  struct Scratch {
    PickedColumns::Hits hits;
    std::vector<float> sums;
  };
  // Writes one row: zeros, and the sum of the values in each column. Values and indices are aligned
  // as their types require, and there are fewer than 2^32. False: an index is not below `columns`;
  // then the row is undefined.
  [[nodiscard]] bool fill(const std::byte* values, const std::byte* indices, std::size_t count,
                          std::byte* row, Scratch& scratch) const;

 private:
  template <typename Sum>
  bool fill_as(const std::byte* values, const std::byte* indices, std::size_t count, Sum* row,
               PickedColumns::Hits& hits) const;
  template <typename Value, typename Sum>
  void add(const Value* values, const std::byte* indices, std::size_t count, Sum* row,
           PickedColumns::Hits& hits) const;

  char value_kind_;
  std::size_t value_bytes_;
  TokenType indices_;
  std::uint64_t columns_;
  DenseType to_;
  std::optional<PickedColumns> picked_;
};

}  // namespace lowtide

// csr.h - a sparse matrix in files, bigger than memory: compressed sparse rows.
//
//   auto matrix = lowtide::Csr::open(data, indices, indptr, 20'000);
//   lowtide::Loader loader({matrix}, {.batch_size = 256, .dense = lowtide::DenseOptions{}});
//   for (const lowtide::Batch& batch : loader) train(batch.as<float>());
//
// Row i has the values data[indptr[i]] to data[indptr[i + 1] - 1], in the columns that `indices`
// has at the same places. They need not be sorted, and a column may come more than once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "lowtide/array.h"
#include "lowtide/dtype.h"
#include "lowtide/options.h"
#include "lowtide/stats.h"

namespace lowtide {

// Copies share one matrix. It shares the budget of `data`, of which up to a quarter goes to where
// rows start: 2 bytes per row. If that is not enough, they are read when they are needed. Any
// number of threads may call const members at the same time.
class Csr {
 public:
  class Impl;

  // Reads all of `indptr` once. The arrays have one axis and stay open. Throws FormatError if
  // `indptr` decreases, does not begin with 0 or exceeds the values, or if `data` and `indices`
  // differ in length; std::invalid_argument for other types than integers in `indices` and
  // `indptr`; and as Array::read().
  [[nodiscard]] static Csr open(const Array& data, const Array& indices, const Array& indptr,
                                std::uint64_t columns);

  [[nodiscard]] std::uint64_t rows() const;
  [[nodiscard]] std::uint64_t columns() const;
  [[nodiscard]] std::uint64_t values() const;  // that are stored, in all rows
  [[nodiscard]] const DType& dtype() const;
  [[nodiscard]] const DType& index_dtype() const;
  // The budget in force.
  [[nodiscard]] std::uint64_t memory_bytes() const;

  // Writes where each of these rows starts in what take() writes, in values, and the end: one entry
  // more than rows, from 0. Throws as Array::take().
  void offsets(RowList rows, std::span<std::int64_t> out) const;
  // Reads any rows in any order; duplicates are allowed. `data` and `indices` must have room for
  // exactly as many values as offsets() says. Throws FormatError for an index that is not below
  // columns(), and as Array::take().
  void take(RowList rows, std::span<std::byte> data, std::span<std::byte> indices) const;

  // A hash of layouts and samples of the contents, as Array::fingerprint().
  [[nodiscard]] std::uint64_t fingerprint() const;
  // Throws std::invalid_argument if the matrix is closed.
  [[nodiscard]] Stats stats() const;
  // Closes all copies, and none of the arrays. Later reads throw std::invalid_argument; loaders
  // continue.
  void close();
  [[nodiscard]] bool closed() const;

 private:
  explicit Csr(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace lowtide

// csr.h - a sparse matrix in files, bigger than memory: compressed sparse rows.
//
//   auto matrix = lowtide::Csr::open(data, indices, indptr, 20'000);
//   lowtide::Loader loader({matrix}, {.batch_size = 256, .dense = lowtide::DenseOptions{}});
//   for (const lowtide::Batch& batch : loader) train(batch.as<float>());
//
// Row i consists of the values data[indptr[i]] to data[indptr[i + 1] - 1]; the same elements of
// `indices` are their columns. Columns need not be sorted, and one may occur more than once in a
// row.
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

// Copies share one matrix, which shares the budget of `data`. The table of row starts takes 2 bytes
// per row, up to a quarter of that budget; if that is not enough, row starts are read on demand.
// Any number of threads may call const members at the same time.
class Csr {
 public:
  class Impl;

  // Reads all of `indptr` once. The arrays must have one axis; they stay open. Throws FormatError
  // if `indptr` decreases, does not begin with 0 or exceeds the values, or if `data` and `indices`
  // differ in length; std::invalid_argument if `indices` or `indptr` are not integers; and as
  // Array::read().
  [[nodiscard]] static Csr open(const Array& data, const Array& indices, const Array& indptr,
                                std::uint64_t columns);

  [[nodiscard]] std::uint64_t rows() const;
  [[nodiscard]] std::uint64_t columns() const;
  [[nodiscard]] std::uint64_t values() const;  // stored ones, in all rows
  [[nodiscard]] const DType& dtype() const;
  [[nodiscard]] const DType& index_dtype() const;
  // The budget in force.
  [[nodiscard]] std::uint64_t memory_bytes() const;

  // Writes where each of these rows starts in the output of take(), counted in values from 0, and
  // where the last one ends: one entry more than rows. Throws as Array::take().
  void offsets(RowList rows, std::span<std::int64_t> out) const;
  // Reads any rows in any order; duplicates are allowed. `data` and `indices` must have room for
  // exactly as many values as offsets() reports. Throws FormatError for an index that is not below
  // columns(), and as Array::take().
  void take(RowList rows, std::span<std::byte> data, std::span<std::byte> indices) const;

  // A hash of layouts and samples of the contents, as Array::fingerprint().
  [[nodiscard]] std::uint64_t fingerprint() const;
  // Throws std::invalid_argument if the matrix is closed.
  [[nodiscard]] Stats stats() const;
  // Closes all copies, but not the arrays. Later reads throw std::invalid_argument; loaders
  // continue.
  void close();
  [[nodiscard]] bool closed() const;

 private:
  explicit Csr(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace lowtide

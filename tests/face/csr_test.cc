// A sparse matrix from C++: rows, batches as they are stored and as dense ones, forks.
#include "lowtide/csr.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "lowtide/loader.h"
#include "support/forked.h"
#include "support/npy_file.h"
#include "support/thrown.h"

namespace lowtide::csr_test {
namespace {

constexpr std::uint64_t kRows = 3000, kColumns = 200;

// Row i has the values i + 1, i + 2, ... in the columns i % 7, i % 7 + 7, ...: as many as i % 29.
struct Matrix {
  explicit Matrix(std::uint64_t memory_bytes = 1 << 20)
      : read{.memory_bytes = memory_bytes, .engine = EngineKind::pread} {
    std::vector<float> values;
    std::vector<std::int32_t> indices;
    std::vector<std::int64_t> indptr{0};
    for (std::uint64_t row = 0; row < kRows; ++row) {
      for (std::uint64_t i = 0; i < row % 29; ++i) {
        values.push_back(static_cast<float>(row + i + 1));
        indices.push_back(static_cast<std::int32_t>(row % 7 + i * 7));
      }
      indptr.push_back(static_cast<std::int64_t>(values.size()));
    }
    csr = Csr::open(open("d.npy", "<f4", values), open("i.npy", "<i4", indices),
                    open("p.npy", "<i8", indptr), kColumns);
  }
  template <typename T>
  [[nodiscard]] Array open(const std::string& name, const std::string& type,
                           const std::vector<T>& values) const {
    const std::string text(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return Array::open(folder.write(name, npy_text(type, {values.size()}, text)), {.read = read});
  }

  TempFolder folder;
  ReadOptions read;
  std::optional<Csr> csr;
};

float expected(std::uint64_t row, std::uint64_t column) {
  const std::uint64_t first = row % 7;
  if (column < first || (column - first) % 7 != 0) return 0;
  const std::uint64_t i = (column - first) / 7;
  return i < row % 29 ? static_cast<float>(row + i + 1) : 0;
}

void expect_dense(const Batch& batch) {
  const auto rows = batch.as<float>();
  ASSERT_EQ(rows.size(), batch.rows() * kColumns);
  for (std::size_t i = 0; i < batch.rows(); ++i) {
    for (std::uint64_t column = 0; column < kColumns; ++column) {
      ASSERT_EQ(rows[i * kColumns + column], expected(batch.index()[i], column));
    }
  }
}

TEST(Csr, ReadsRowsInAnyOrder) {
  const Matrix matrix;
  const std::vector<std::int64_t> rows{2999, 0, 28, 28, 1500};
  std::vector<std::int64_t> offsets(rows.size() + 1);
  matrix.csr->offsets(rows, offsets);
  std::vector<float> values(static_cast<std::size_t>(offsets.back()));
  std::vector<std::int32_t> indices(values.size());
  matrix.csr->take(rows, std::as_writable_bytes(std::span(values)),
                   std::as_writable_bytes(std::span(indices)));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto row = static_cast<std::uint64_t>(rows[i]);
    ASSERT_EQ(offsets[i + 1] - offsets[i], static_cast<std::int64_t>(row % 29));
    for (std::int64_t at = offsets[i]; at < offsets[i + 1]; ++at) {
      const auto place = static_cast<std::size_t>(at);
      EXPECT_EQ(values[place], expected(row, static_cast<std::uint64_t>(indices[place])));
    }
  }
  EXPECT_EQ(matrix.csr->rows(), kRows);
  EXPECT_EQ(matrix.csr->columns(), kColumns);
  EXPECT_THROW(matrix.csr->take(rows, {}, {}), std::invalid_argument);
  EXPECT_THROW(matrix.csr->offsets(rows, {}), std::invalid_argument);
  const std::vector<std::int64_t> outside{3000};
  EXPECT_THROW(matrix.csr->offsets(outside, std::span(offsets).first(2)), std::out_of_range);
}

TEST(Csr, EveryEpochHasEveryRowDense) {
  const Matrix matrix;
  Loader loader({*matrix.csr}, {.batch_size = 64, .epochs = 2, .dense = DenseOptions{}});
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<bool> seen(kRows);
    for (const Batch& batch : loader) {
      ASSERT_EQ(batch.columns(), 1U);
      expect_dense(batch);
      EXPECT_TRUE(batch.offsets().empty());
      for (const std::uint64_t row : batch.index()) seen[row] = true;
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kRows / 64 * 64);
  }
}

TEST(Csr, LongBatchesWaitForTheOthers) {
  const Matrix matrix(192 * 1024);  // little more than one batch as it is stored
  Loader loader({*matrix.csr}, {.batch_size = 64,
                                .order = OrderKind::sequential,
                                .epochs = 1,
                                .dense = DenseOptions{.columns = std::vector<std::uint64_t>{0}}});
  std::uint64_t batches = 0;
  for (const Batch& batch : loader) {
    for (std::size_t i = 0; i < batch.rows(); ++i) {
      ASSERT_EQ(batch.as<float>()[i], expected(batch.index()[i], 0));
    }
    ++batches;
  }
  EXPECT_EQ(batches, kRows / 64);
}

TEST(Csr, ALoaderContinuesInAFork) {
  if (!children_work()) GTEST_SKIP() << "a sanitizer cannot follow";
  const Matrix matrix;
  Loader loader({*matrix.csr}, {.batch_size = 50, .dense = DenseOptions{}});
  expect_dense(loader.next());
  const pid_t child = start_child([&] {
    for (int i = 0; i < 100; ++i) {
      const Batch batch = loader.next();
      for (std::size_t row = 0; row < batch.rows(); ++row) {
        for (std::uint64_t column = 0; column < kColumns; ++column) {
          if (batch.as<float>()[row * kColumns + column] != expected(batch.index()[row], column))
            return 1;
        }
      }
    }
    return 0;
  });
  expect_success(child);
  expect_dense(loader.next());
}

TEST(Csr, ClosedMatricesAndArraysAreRefused) {
  Matrix matrix;
  Loader loader({*matrix.csr}, {.batch_size = 64, .dense = DenseOptions{}});
  matrix.csr->close();
  std::vector<std::int64_t> offsets(2);
  EXPECT_THROW(matrix.csr->offsets(std::vector<std::int64_t>{1}, offsets), std::invalid_argument);
  EXPECT_THROW(Loader({*matrix.csr}, {.batch_size = 64}), std::invalid_argument);
  expect_dense(loader.next());  // one that was made before goes on
}

}  // namespace
}  // namespace lowtide::csr_test

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "lowtide/array.h"
#include "lowtide/loader.h"
#include "support/data_file.h"
#include "support/npy_file.h"
#include "support/thrown.h"

namespace lowtide::array_chunks_test {
namespace {

using Shape = std::vector<std::uint64_t>;

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kRows = 1003, kColumns = 37;

std::span<std::byte> bytes_of(std::vector<std::uint32_t>& items) {
  return std::as_writable_bytes(std::span(items));
}

class ArrayChunksTest : public testing::TestWithParam<Shape> {
 protected:
  ArrayChunksTest() { std::iota(data_.begin(), data_.end(), 0U); }

  // A matrix in chunks that lie in a random order in one file. Elements are their own numbers;
  // every fifth chunk was never written.
  [[nodiscard]] ArrayChunks write(const Shape& chunk) {
    const std::uint64_t down = (kRows + chunk[0] - 1) / chunk[0];
    const std::uint64_t across = (kColumns + chunk[1] - 1) / chunk[1];
    std::vector<std::uint64_t> order(down * across);
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    std::ranges::shuffle(order, std::mt19937_64(3));
    ArrayChunks chunks{.format = "hdf5",
                       .dtype = "'<u4'",
                       .shape = {kRows, kColumns},
                       .chunk_shape = chunk,
                       .offsets_bytes = std::vector(order.size(), ArrayChunks::kAbsent),
                       .fill = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}};
    std::string text = "head";
    for (const std::uint64_t number : order) {
      const std::uint64_t top = number / across * chunk[0], left = number % across * chunk[1];
      const bool absent = number % 5 == 4;
      if (!absent) chunks.offsets_bytes[number] = text.size();
      for (std::uint64_t row = top; row < top + chunk[0]; ++row) {
        for (std::uint64_t column = left; column < left + chunk[1]; ++column) {
          const bool inside = row < kRows && column < kColumns;
          std::uint32_t item = 0xffffffff;
          if (inside && absent) data_[row * kColumns + column] = 0x04030201;
          if (inside) item = data_[row * kColumns + column];
          if (!absent) text.append(reinterpret_cast<const char*>(&item), sizeof(item));
        }
      }
    }
    chunks.files = {LocatedFile::of(folder_.write("a.h5", text))};
    return chunks;
  }

  void expect_rows(std::span<const std::uint64_t> index, std::span<const std::byte> found) const {
    for (std::size_t i = 0; i < index.size(); ++i) {
      ASSERT_EQ(std::memcmp(found.data() + i * kColumns * 4, data_.data() + index[i] * kColumns,
                            kColumns * 4),
                0)
          << "row " << index[i];
    }
  }

  const TempFolder folder_;
  std::vector<std::uint32_t> data_ = std::vector<std::uint32_t>(kRows * kColumns);
};

TEST_P(ArrayChunksTest, ReadsTakesAndTakesParts) {
  const Array array = Array::open_chunks(write(GetParam()), {.memory_bytes = 4 * kMiB});
  EXPECT_EQ(array.format(), "hdf5");
  EXPECT_EQ(array.file_rows(), std::vector<std::uint64_t>{kRows});
  std::vector<std::uint32_t> all(kRows * kColumns);
  array.read(0, kRows, bytes_of(all));
  EXPECT_EQ(all, data_);
  std::vector<std::uint64_t> rows(2 * kRows);
  std::mt19937_64 random(1);
  for (std::uint64_t& row : rows) row = random() % kRows;
  std::vector<std::uint32_t> taken(rows.size() * kColumns);
  array.take(std::span<const std::uint64_t>(rows), bytes_of(taken));
  expect_rows(rows, std::as_bytes(std::span(taken)));
  std::vector<std::uint32_t> parts(rows.size() * 30);
  array.take_part(std::span<const std::uint64_t>(rows), 5 * 4, 30 * 4, bytes_of(parts));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_TRUE(std::equal(parts.begin() + static_cast<std::ptrdiff_t>(i * 30),
                           parts.begin() + static_cast<std::ptrdiff_t>(i * 30 + 30),
                           data_.begin() + static_cast<std::ptrdiff_t>(rows[i] * kColumns + 5)));
  }
}

TEST_P(ArrayChunksTest, BatchesHaveEveryRowOnce) {
  for (const OrderKind order : {OrderKind::shuffle, OrderKind::sequential}) {
    for (const std::uint64_t memory_bytes : {kMiB, 64 * kMiB}) {
      const Array array = Array::open_chunks(write(GetParam()), {.memory_bytes = memory_bytes});
      Batches batches = array.batches({.batch_size = 100, .order = order});
      std::vector<std::uint64_t> seen;
      for (const Batch& batch : batches) {
        expect_rows(batch.index(), batch.column(0));
        seen.insert(seen.end(), batch.index().begin(), batch.index().end());
      }
      std::ranges::sort(seen);
      std::vector<std::uint64_t> every(kRows);
      std::iota(every.begin(), every.end(), std::uint64_t{0});
      EXPECT_EQ(seen, every);
    }
  }
}

TEST_P(ArrayChunksTest, IsAColumnBesideOthers) {
  std::vector<std::uint64_t> labels(kRows);
  std::iota(labels.begin(), labels.end(), std::uint64_t{0});
  const std::string text(reinterpret_cast<const char*>(labels.data()), labels.size() * 8);
  const Array beside = Array::open(folder_.write("y.npy", npy_text("<u8", {kRows}, text)));
  const Array array = Array::open_chunks(write(GetParam()), {.memory_bytes = 4 * kMiB});
  Loader loader(LoaderColumns{array, beside}, {.batch_size = 64, .epochs = 1, .drop_last = false});
  std::uint64_t rows = 0;
  for (const Batch& batch : loader) {
    const auto* const index = reinterpret_cast<const std::uint64_t*>(batch.column(1).data());
    expect_rows({index, batch.rows()}, batch.column(0));
    rows += batch.rows();
  }
  EXPECT_EQ(rows, kRows);
}

TEST_P(ArrayChunksTest, ACopyHasTheSameFingerprint) {
  const Array array = Array::open_chunks(write(GetParam()));
  const std::string text(reinterpret_cast<const char*>(data_.data()), data_.size() * 4);
  const Array copy = Array::open(folder_.write("m.npy", npy_text("<u4", {kRows, kColumns}, text)));
  EXPECT_EQ(array.fingerprint(), copy.fingerprint());
}

INSTANTIATE_TEST_SUITE_P(Shapes, ArrayChunksTest,
                         testing::Values(Shape{100, 37}, Shape{1, 37}, Shape{64, 10}, Shape{64, 1},
                                         Shape{2000, 40}));

TEST_F(ArrayChunksTest, ALargeRunOfShortRunsIsReadInBoundedPlans) {
  const Array array = Array::open_chunks(write({1, 1}), {.memory_bytes = 4 * kMiB});
  const Array flat = array.flat(kMiB);
  std::vector<std::uint32_t> all(kRows * kColumns);
  flat.read(0, all.size(), bytes_of(all));
  EXPECT_EQ(all, data_);
}

TEST_F(ArrayChunksTest, AContiguousArrayIsAPlainFile) {
  ArrayChunks chunks{.format = "hdf5",
                     .dtype = "'<u4'",
                     .shape = {3, 2},
                     .chunk_shape = {3, 2},
                     .files = {LocatedFile::of(folder_.write("a.h5", pattern(40)))},
                     .offsets_bytes = {16}};
  const Array array = Array::open_chunks(chunks);
  EXPECT_EQ(array.stats().layout, "C");
  std::vector<std::uint32_t> all(6);
  array.read(0, 3, bytes_of(all));
  EXPECT_EQ(std::memcmp(all.data(), pattern(40).data() + 16, 24), 0);
  chunks.offsets_bytes = {17};
  EXPECT_THROW((void)Array::open_chunks(chunks), FormatError);
}

TEST_F(ArrayChunksTest, AnEmptyArrayNeedsNoTable) {
  const Array array = Array::open_chunks({.format = "hdf5",
                                          .dtype = "'<u4'",
                                          .shape = {0, 2},
                                          .chunk_shape = {1, 2},
                                          .files = {LocatedFile::of(folder_.write("a.h5", "x"))}});
  EXPECT_EQ(array.shape(), (Shape{0, 2}));
}

TEST_F(ArrayChunksTest, ATableThatDoesNotFitIsRefusedWithItsSize) {
  ArrayChunks chunks = write({1, 1});
  const std::string error = thrown<std::invalid_argument>(
      [&] { (void)Array::open_chunks(chunks, {.memory_bytes = 256 * 1024}); });
  EXPECT_NE(error.find("the table of 37111 chunks"), std::string::npos) << error;
  EXPECT_NE(error.find("290 KiB"), std::string::npos) << error;
}

TEST_F(ArrayChunksTest, AFileThatChangedSinceItsTableWasMadeIsRefused) {
  ArrayChunks chunks = write({100, 37});
  folder_.write("a.h5", pattern(1 << 20));
  EXPECT_THROW((void)Array::open_chunks(chunks), IoError);
}

}  // namespace
}  // namespace lowtide::array_chunks_test

#include "dataset/rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::rows_test {
namespace {

using Shape = std::vector<std::uint64_t>;

Layout layout_of(const std::string& dtype, Shape shape, bool fortran_order = false,
                 std::uint64_t data_offset_bytes = 0) {
  Layout layout;
  layout.format = "npy";
  layout.dtype = DType::parse(dtype);
  layout.shape = std::move(shape);
  layout.fortran_order = fortran_order;
  layout.data_offset_bytes = data_offset_bytes;
  return make_layout(std::move(layout), "test");
}

std::uint64_t product(const Shape& shape, std::size_t from = 0) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(std::min(from, shape.size())),
                         shape.end(), std::uint64_t{1}, std::multiplies<>());
}

// Files in memory. An element holds its own number: row of the whole, then place in the row in C
// order.
struct FakeFiles {
  std::vector<std::vector<std::uint64_t>> files;
  std::vector<RowsFile> parts;
  std::uint64_t rows = 0;

  FakeFiles(const std::vector<std::uint64_t>& row_counts, Shape inner, bool fortran_order) {
    const std::uint64_t elements = product(inner);
    for (const std::uint64_t count : row_counts) {
      Shape shape = inner;
      shape.insert(shape.begin(), count);
      const std::uint64_t header = 3 + files.size();  // in elements
      std::vector<std::uint64_t> file(header + count * elements, ~std::uint64_t{0});
      for (std::uint64_t row = 0; row < count; ++row) {
        for (std::uint64_t e = 0; e < elements; ++e) {
          file[header + place(row, e, shape, fortran_order)] = (rows + row) * elements + e;
        }
      }
      parts.push_back({layout_of("<u8", shape, fortran_order, header * 8),
                       {"file" + std::to_string(files.size())}});
      files.push_back(std::move(file));
      rows += count;
    }
  }

  // Element by element: from an index on every axis to a place in the file.
  static std::uint64_t place(std::uint64_t row, std::uint64_t element, const Shape& shape,
                             bool fortran_order) {
    if (!fortran_order) return row * product(shape, 1) + element;
    Shape index(shape.size());
    index[0] = row;
    for (std::size_t axis = shape.size(); axis-- > 1;) {
      index[axis] = element % shape[axis];
      element /= shape[axis];
    }
    std::uint64_t at = 0, stride = 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      at += index[axis] * stride;
      stride *= shape[axis];
    }
    return at;
  }

  void serve(const std::vector<Read>& reads) const {
    for (const Read& read : reads) {
      const auto& file = files.at(read.from.shard);
      ASSERT_LE(read.from.end_bytes(), file.size() * 8);
      ASSERT_GT(read.from.size_bytes, 0U);
      std::memcpy(read.into,
                  reinterpret_cast<const std::byte*>(file.data()) + read.from.offset_bytes,
                  read.from.size_bytes);
    }
  }
};

std::vector<std::byte*> rows_in(std::vector<std::uint64_t>& out, std::size_t count,
                                std::uint64_t row_bytes) {
  std::vector<std::byte*> targets;
  for (std::size_t i = 0; i < count; ++i) {
    targets.push_back(reinterpret_cast<std::byte*>(out.data()) + i * row_bytes);
  }
  return targets;
}

struct RowsCase {
  std::vector<std::uint64_t> row_counts;
  Shape inner;
};

class RowsOf : public testing::TestWithParam<RowsCase> {};

TEST_P(RowsOf, EveryShapeAndOrderGoToTheirPlaces) {
  for (const bool fortran_order : {false, true}) {
    const auto& [row_counts, inner] = GetParam();
    const FakeFiles files(row_counts, inner, fortran_order && !inner.empty());
    const Rows rows(files.parts);
    const std::uint64_t elements = product(inner);
    ASSERT_EQ(rows.size(), files.rows);
    ASSERT_EQ(rows.sample_bytes(), elements * 8);
    ASSERT_EQ(rows.data_bytes(), files.rows * elements * 8);
    EXPECT_EQ(rows.parts(), fortran_order && elements > 1 ? elements : 1);
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> samples;
    for (std::uint64_t i = 0; i < 3 * files.rows; ++i) samples.push_back(random() % files.rows);
    std::vector<std::uint64_t> out(samples.size() * elements, 0);
    const auto targets = rows_in(out, samples.size(), rows.sample_bytes());
    for (std::uint64_t part = 0; part < rows.parts(); ++part) {
      std::vector<Read> reads;
      rows.locate(0, part, samples, targets, reads);
      EXPECT_LE(reads.size(), samples.size() * rows.reads_per_part());
      files.serve(reads);
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      for (std::uint64_t e = 0; e < elements; ++e) {
        ASSERT_EQ(out[i * elements + e], samples[i] * elements + e) << "row " << samples[i];
      }
    }
  }
}

TEST_P(RowsOf, EveryRunOfRowsIsFewReads) {
  const auto& [row_counts, inner] = GetParam();
  const FakeFiles files(row_counts, inner, false);
  const Rows rows(files.parts);
  const std::uint64_t elements = product(inner);
  for (std::uint64_t first = 0; first <= files.rows; ++first) {
    for (std::uint64_t count = 0; count <= files.rows - first; ++count) {
      std::vector<std::uint64_t> out(count * elements + 1, 0), expected(count * elements);
      std::vector<Read> reads;
      rows.locate_run(first, count, reinterpret_cast<std::byte*>(out.data()), reads);
      EXPECT_LE(reads.size(), row_counts.size());
      files.serve(reads);
      std::iota(expected.begin(), expected.end(), first * elements);
      out.pop_back();
      ASSERT_EQ(out, expected) << first << " + " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RowsOf,
                         testing::Values(RowsCase{{7}, {}}, RowsCase{{7}, {5}},
                                         RowsCase{{5}, {3, 4}}, RowsCase{{4}, {2, 3, 5}},
                                         RowsCase{{3, 5, 1}, {4}},
                                         RowsCase{{0, 3, 0, 0, 4, 0}, {2, 3}}, RowsCase{{2, 2}, {}},
                                         RowsCase{{6}, {1}}, RowsCase{{1, 1, 1, 1}, {3, 2, 2}}));

TEST(Rows, JoinsNeighboursInFileAndMemory) {
  const Rows rows({{layout_of("<f4", {100'000, 10}, false, 128), {"a"}}});
  std::vector<std::byte> out(1000 * 40);
  std::vector<std::uint64_t> samples(1000);
  std::iota(samples.begin(), samples.end(), 50);
  std::vector<std::byte*> targets;
  for (std::size_t i = 0; i < 1000; ++i) targets.push_back(out.data() + i * 40);
  std::vector<Read> reads;
  rows.locate(0, 0, samples, targets, reads);
  ASSERT_EQ(reads.size(), 1U);
  EXPECT_EQ(reads[0].from.offset_bytes, 128U + 50 * 40);
  EXPECT_EQ(reads[0].from.size_bytes, 40'000U);

  std::swap(targets[500], targets[501]);
  reads.clear();
  rows.locate(0, 0, samples, targets, reads);
  EXPECT_EQ(reads.size(), 4U) << "neighbours in the file that are none in memory stay apart";
}

TEST(Rows, JoinsNoMoreThanAMiB) {
  const Rows rows({{layout_of("<f4", {100, 64 * 1024}), {"a"}}});
  std::vector<Read> reads;
  std::vector<std::byte> memory(rows.data_bytes());
  rows.locate_run(0, 100, memory.data(), reads);
  std::uint64_t at = 0;
  for (const Read& read : reads) {
    EXPECT_EQ(read.from.offset_bytes, at);
    EXPECT_LE(read.from.size_bytes, 1024U * 1024);
    at = read.from.end_bytes();
  }
  EXPECT_EQ(at, rows.data_bytes());
  EXPECT_EQ(reads.size(), 25U);
}

TEST(Rows, JoinsTheCellsOfAColumn) {
  const Rows rows({{layout_of("<f4", {1000, 3}, true), {"a"}}});
  ASSERT_EQ(rows.parts(), 3U);
  std::vector<std::byte> out(1000 * 12);
  const std::vector<std::uint64_t> samples{5, 6, 900};
  const std::vector<std::byte*> targets{out.data(), out.data() + 4, out.data() + 100};
  std::vector<Read> reads;
  rows.locate(0, 1, samples, targets, reads);
  ASSERT_EQ(reads.size(), 2U);
  EXPECT_EQ(reads[0].from.offset_bytes, 4U * (1000 + 5));
  EXPECT_EQ(reads[0].from.size_bytes, 8U);
  EXPECT_EQ(reads[1].from.offset_bytes, 4U * (1000 + 900));
}

TEST(Rows, GivesPartsOfRows) {
  const FakeFiles files({3, 0, 4}, {10}, false);
  const Rows rows(files.parts);
  const std::vector<std::uint64_t> samples{6, 0, 3, 3, 2};
  std::vector<std::uint64_t> out(samples.size() * 4, 0);
  const auto targets = rows_in(out, samples.size(), 4 * 8);
  std::vector<Read> reads;
  rows.locate_inside(3 * 8, 4 * 8, samples, targets, reads);
  files.serve(reads);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::uint64_t e = 0; e < 4; ++e) EXPECT_EQ(out[i * 4 + e], samples[i] * 10 + 3 + e);
  }
  reads.clear();
  rows.locate_inside(80, 0, samples, targets, reads);
  EXPECT_TRUE(reads.empty()) << "no bytes are no reads";
}

TEST(Rows, SplitsRowsAboveOneGiB) {
  constexpr std::uint64_t kRowBytes = 5'000'000'003;
  const Rows rows({{layout_of("|u1", {4, kRowBytes}, false, 77), {"a"}}});
  EXPECT_EQ(rows.reads_per_part(), 5U);
  std::byte* const base = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);  // never touched
  for (const bool run : {true, false}) {
    std::vector<Read> reads;
    if (run) {
      rows.locate_run(2, 1, base, reads);
    } else {
      const std::vector<std::uint64_t> samples{2};
      const std::vector<std::byte*> targets{base};
      rows.locate(0, 0, samples, targets, reads);
      EXPECT_EQ(reads.size(), 5U);
    }
    std::uint64_t at = 77 + 2 * kRowBytes;
    for (const Read& read : reads) {
      EXPECT_EQ(read.from.offset_bytes, at);
      EXPECT_EQ(read.into, base + (at - 77 - 2 * kRowBytes));
      EXPECT_LE(read.from.size_bytes, 1U << 30);
      at += read.from.size_bytes;
    }
    EXPECT_EQ(at, 77 + 3 * kRowBytes);
  }
}

TEST(Rows, CallsA0dArrayOneRow) {
  const Rows rows({{layout_of("<f8", {}, false, 128), {"a"}}});
  EXPECT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.sample_bytes(), 8U);
  EXPECT_TRUE(rows.shape().empty());
}

TEST(Rows, TakesRowsOfNoBytes) {
  const Rows none({{layout_of("<f4", {5, 0, 3}), {"a"}}});
  EXPECT_EQ(none.size(), 5U);
  EXPECT_EQ(none.sample_bytes(), 0U);
  std::vector<Read> reads;
  none.locate_run(0, 5, nullptr, reads);
  EXPECT_TRUE(reads.empty());
  const Rows fortran({{layout_of("<f4", {5, 0, 3}, true), {"a"}}});
  EXPECT_EQ(fortran.parts(), 1U);
}

std::string refusal(const std::vector<RowsFile>& parts) {
  return thrown([&] { const Rows rows(parts); });
}

TEST(Rows, RefusesFilesThatDoNotBelongTogether) {
  EXPECT_EQ(refusal({}), "an array needs at least one file");
  EXPECT_EQ(refusal({{layout_of("<f4", {3}), {"a"}}, {layout_of("<f8", {3}), {"b"}}}),
            "b: dtype is '<f8', but a has '<f4'");
  EXPECT_EQ(refusal({{layout_of("<f4", {3, 4}), {"a"}}, {layout_of("<f4", {5, 5}), {"b"}}}),
            "b: shape is (5, 5), but a has (3, 4); files are joined along the first axis, so all "
            "others must be equal");
  EXPECT_NE(refusal({{layout_of("<f4", {3, 4}), {"a"}}, {layout_of("<f4", {3}), {"b"}}}),
            "no error");
  EXPECT_NE(refusal({{layout_of("<f4", {}), {"a"}}, {layout_of("<f4", {}), {"b"}}}), "no error");
  EXPECT_EQ(refusal({{layout_of("<f4", {3, 4}), {"a"}}, {layout_of("<f4", {5, 4}, true), {"b"}}}),
            "b: order is F, but a has C");
  EXPECT_EQ(refusal({{layout_of("<f4", {3, 4}), {"a"}}, {layout_of("<f4", {0, 4}), {"b"}}}),
            "no error");
  const Rows one_row({{layout_of("<f4", {1, 4}), {"a"}}, {layout_of("<f4", {3, 4}, true), {"b"}}});
  EXPECT_TRUE(one_row.fortran_order()) << "a single row is what NumPy calls C order";
}

}  // namespace
}  // namespace lowtide::rows_test

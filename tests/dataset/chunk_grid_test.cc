#include "dataset/chunk_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "dataset/rows.h"
#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::chunk_grid_test {
namespace {

using Shape = std::vector<std::uint64_t>;
using Item = std::uint32_t;

constexpr std::uint64_t kItemBytes = sizeof(Item);
constexpr Item kFill = 0xfedcba98, kPadding = 0xdddddddd;

std::uint64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

Layout layout_of(const std::string& dtype, Shape shape) {
  Layout layout;
  layout.format = "chunks";
  layout.dtype = DType::parse(dtype);
  layout.shape = std::move(shape);
  return make_layout(std::move(layout), "test");
}

// The index on every axis of the number-th element in C order.
Shape index_of(std::uint64_t number, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = number % shape[axis];
    number /= shape[axis];
  }
  return index;
}

std::uint64_t number_of(const Shape& index, const Shape& shape) {
  std::uint64_t number = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    number = number * shape[axis] + index[axis];
  return number;
}

// An array whose elements are their own numbers, in chunks that lie in random order in several
// files, element by element; one in `absent` chunks was never written.
struct FakeChunks {
  FakeChunks(const Shape& of, const Shape& in, std::size_t file_count, unsigned absent,
             std::uint64_t seed)
      : shape(of), chunk(in), files(file_count) {
    std::mt19937_64 random(seed);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      grid.push_back((shape[axis] + chunk[axis] - 1) / chunk[axis]);
    }
    table.chunk_shape = chunk;
    table.offsets_bytes.assign(product(grid), ChunkTable::kAbsent);
    if (file_count > 1) table.shards.assign(product(grid), 0);
    const Item fill = kFill;
    table.fill.resize(kItemBytes);
    std::memcpy(table.fill.data(), &fill, kItemBytes);
    std::vector<std::uint64_t> order(product(grid));
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    std::ranges::shuffle(order, random);
    for (const std::uint64_t number : order) {
      if (absent > 0 && random() % absent == 0) continue;
      const auto file = static_cast<std::uint32_t>(random() % file_count);
      files[file].resize(files[file].size() + random() % 3, kPadding);
      table.offsets_bytes[number] = files[file].size() * kItemBytes;
      if (file_count > 1) table.shards[number] = file;
      files[file].resize(files[file].size() + product(chunk), kPadding);
    }
    expected.assign(product(shape), kFill);
    for (std::uint64_t element = 0; element < expected.size(); ++element) {
      Shape index = index_of(element, shape), place = index;
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        index[axis] = place[axis] / chunk[axis];
        place[axis] %= chunk[axis];
      }
      const std::uint64_t number = number_of(index, grid);
      if (table.offsets_bytes[number] == ChunkTable::kAbsent) continue;
      auto& file = files[table.shards.empty() ? 0 : table.shards[number]];
      expected[element] = static_cast<Item>(element);
      file[table.offsets_bytes[number] / kItemBytes + number_of(place, chunk)] = expected[element];
    }
  }

  [[nodiscard]] Rows rows() const {
    auto shards = std::make_shared<Shards>();
    for (std::size_t i = 0; i < files.size(); ++i) {
      shards->add({"file" + std::to_string(i), files[i].size() * kItemBytes});
    }
    return {layout_of("<u4", shape), table, std::move(shards)};
  }

  void serve(const std::vector<Read>& reads, std::uint32_t first_shard = 0) const {
    for (const Read& read : reads) {
      const auto& file = files.at(read.from.shard - first_shard);
      ASSERT_LE(read.from.end_bytes(), file.size() * kItemBytes);
      ASSERT_GT(read.from.size_bytes, 0U);
      std::memcpy(read.into,
                  reinterpret_cast<const std::byte*>(file.data()) + read.from.offset_bytes,
                  read.from.size_bytes);
    }
  }

  // Elements [first, first + count) of the array.
  [[nodiscard]] std::vector<Item> part(std::uint64_t first, std::uint64_t count) const {
    const auto begin = expected.begin() + static_cast<std::ptrdiff_t>(first);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }

  const Shape shape, chunk;
  Shape grid;
  ChunkTable table;
  std::vector<std::vector<Item>> files;
  std::vector<Item> expected;
};

std::byte* bytes_of(std::vector<Item>& items, std::uint64_t at = 0) {
  return reinterpret_cast<std::byte*>(items.data() + at);
}

struct ChunkCase {
  Shape shape, chunk;
  std::uint64_t parts;  // of a row
};

class ChunksOf : public testing::TestWithParam<ChunkCase> {
 protected:
  template <typename Check>
  static void for_files(const Check& check) {
    for (const std::size_t files : {std::size_t{1}, std::size_t{3}}) {
      for (const unsigned absent : {0U, 3U, 1U}) {
        check(FakeChunks(GetParam().shape, GetParam().chunk, files, absent, files * 10 + absent));
      }
    }
  }
};

TEST_P(ChunksOf, RowsInAnyOrderGoToTheirPlaces) {
  for_files([](const FakeChunks& fake) {
    const Rows rows = fake.rows().from_shard(7);
    ASSERT_EQ(rows.parts(), GetParam().parts);
    ASSERT_EQ(rows.size(), fake.shape[0]);
    const std::uint64_t elements = product(fake.shape) / fake.shape[0];
    ASSERT_EQ(rows.sample_bytes(), elements * kItemBytes);
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> samples;
    for (std::uint64_t i = 0; i < 3 * rows.size(); ++i) samples.push_back(random() % rows.size());
    std::vector<Item> out(samples.size() * elements, 0);
    std::vector<std::byte*> targets;
    for (std::size_t i = 0; i < samples.size(); ++i) targets.push_back(bytes_of(out, i * elements));
    for (std::uint64_t part = 0; part < rows.parts(); ++part) {
      std::vector<Read> reads;
      rows.locate(0, part, samples, targets, reads);
      EXPECT_LE(reads.size(), samples.size() * rows.reads_per_part());
      fake.serve(reads, 7);
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::vector<Item> row(out.begin() + static_cast<std::ptrdiff_t>(i * elements),
                                  out.begin() + static_cast<std::ptrdiff_t>((i + 1) * elements));
      ASSERT_EQ(row, fake.part(samples[i] * elements, elements)) << "row " << samples[i];
    }
  });
}

TEST_P(ChunksOf, EveryRunOfRowsArrivesWithinMostReads) {
  for_files([](const FakeChunks& fake) {
    const Rows rows = fake.rows();
    const std::uint64_t elements = rows.sample_bytes() / kItemBytes;
    for (std::uint64_t first = 0; first < rows.size(); ++first) {
      for (std::uint64_t count = 1; count <= rows.size() - first; ++count) {
        std::vector<Item> out(count * elements, 0);
        std::vector<Read> reads;
        rows.locate_run(first, count, bytes_of(out), reads);
        EXPECT_LE(reads.size(), rows.most_reads(count));
        fake.serve(reads);
        ASSERT_EQ(out, fake.part(first * elements, count * elements)) << first << " + " << count;
      }
    }
  });
}

TEST_P(ChunksOf, EveryPartOfARowArrives) {
  for_files([](const FakeChunks& fake) {
    const Rows rows = fake.rows();
    const std::uint64_t elements = rows.sample_bytes() / kItemBytes;
    for (std::uint64_t first = 0; first < elements; ++first) {
      const std::uint64_t row = (first * 7) % rows.size(), count = elements - first;
      std::vector<Item> out(count, 0);
      std::byte* const target = bytes_of(out);
      std::vector<Read> reads;
      rows.locate_inside(first * kItemBytes, count * kItemBytes, {&row, 1}, {&target, 1}, reads);
      fake.serve(reads);
      ASSERT_EQ(out, fake.part(row * elements + first, count));
    }
  });
}

TEST_P(ChunksOf, FlatHasAllElementsInCOrder) {
  for_files([](const FakeChunks& fake) {
    const Rows rows = fake.rows(), flat = rows.flat();
    ASSERT_EQ(flat.size(), product(fake.shape));
    EXPECT_EQ(flat.parts(), 1U);
    EXPECT_EQ(flat.chunks(), rows.chunks()) << "the table is shared";
    for (std::uint64_t first = 0; first < flat.size(); first += 5) {
      std::vector<Item> out(flat.size() - first, 0);
      std::vector<Read> reads;
      flat.locate_run(first, out.size(), bytes_of(out), reads);
      EXPECT_LE(reads.size(), flat.most_reads(out.size()));
      fake.serve(reads);
      ASSERT_EQ(out, fake.part(first, out.size()));
    }
  });
}

TEST_P(ChunksOf, ACopyWithoutChunksHasTheSameHash) {
  const FakeChunks fake(GetParam().shape, GetParam().chunk, 2, 0, 1);
  const Rows copy({{layout_of("<u4", fake.shape), {"copy"}}});
  EXPECT_EQ(fake.rows().layout_hash(), copy.layout_hash());
}

INSTANTIATE_TEST_SUITE_P(Shapes, ChunksOf,
                         testing::Values(ChunkCase{{17}, {5}, 1}, ChunkCase{{1}, {4}, 1},
                                         ChunkCase{{10, 6}, {4, 6}, 1},   // whole rows
                                         ChunkCase{{10, 6}, {1, 6}, 1},   //
                                         ChunkCase{{10, 6}, {4, 9}, 1},   // whole rows with padding
                                         ChunkCase{{10, 7}, {4, 3}, 3},   // a grid
                                         ChunkCase{{10, 7}, {20, 1}, 7},  //
                                         ChunkCase{{5, 4, 6}, {2, 4, 6}, 1},  //
                                         ChunkCase{
                                             {5, 4, 6}, {2, 3, 6}, 2},  // the last axis is whole
                                         ChunkCase{{5, 4, 6}, {2, 4, 4}, 8},  //
                                         ChunkCase{{5, 4, 6}, {3, 3, 4}, 8},  //
                                         ChunkCase{{3, 2, 3, 5}, {2, 1, 2, 5}, 4},
                                         ChunkCase{{3, 2, 3, 5}, {2, 2, 2, 2}, 18}));

TEST(ChunkGrid, RowsOfAChunkThatTouchAreOneRead) {
  const FakeChunks fake({64, 8}, {64, 8}, 1, 0, 1);
  const Rows rows = fake.rows();
  std::vector<Item> out(64 * 8);
  std::vector<std::uint64_t> samples(64);
  std::iota(samples.begin(), samples.end(), std::uint64_t{0});
  std::vector<std::byte*> targets;
  for (std::size_t i = 0; i < samples.size(); ++i) targets.push_back(bytes_of(out, i * 8));
  std::vector<Read> reads;
  rows.locate(0, 0, samples, targets, reads);
  EXPECT_EQ(reads.size(), 1U);
}

TEST(ChunkGrid, RowsThatNeedManyReadsArePlannedFewAtATime) {
  EXPECT_EQ(FakeChunks({64, 100}, {64, 1}, 1, 0, 1).rows().rows_for(4096), 40U);
  EXPECT_EQ(FakeChunks({64, 100}, {1, 100}, 1, 0, 1).rows().rows_for(16), 16U);
  EXPECT_EQ(FakeChunks({64, 100}, {8, 100}, 1, 0, 1).rows().rows_for(2), 16U);
  EXPECT_EQ(FakeChunks({4, 100}, {4, 1}, 1, 0, 1).rows().rows_for(10), 1U);
}

TEST(ChunkGrid, TheTableIsCounted) {
  const FakeChunks fake({1000, 4}, {1, 4}, 2, 0, 1);
  EXPECT_GE(fake.rows().held_bytes(), 1000 * 12U);
  EXPECT_EQ(fake.rows().file_rows(), std::vector<std::uint64_t>{1000});
}

std::string error_of(const Shape& shape, ChunkTable table, std::uint64_t file_bytes) {
  const auto shards = std::make_shared<Shards>(std::vector<Shard>{{"a.h5", file_bytes}});
  return thrown<FormatError>(
      [&] { (void)Rows(layout_of("<u4", shape), std::move(table), shards); });
}

TEST(ChunkGrid, RefusesTablesThatContradictTheFile) {
  EXPECT_EQ(error_of({10, 4}, {.chunk_shape = {5, 4}, .offsets_bytes = {0, 81}}, 160),
            "a.h5: expected 80 bytes of chunk 1 at byte 81, found 79 bytes (the file has 160 "
            "bytes)");
  EXPECT_EQ(error_of({10, 4}, {.chunk_shape = {5, 4}, .offsets_bytes = {UINT64_MAX - 8, 0}}, 160),
            "a.h5: expected 80 bytes of chunk 0 at byte 18446744073709551607, found 0 bytes (the "
            "file has 160 bytes)");
  EXPECT_EQ(error_of({10, 4}, {.chunk_shape = {5, 4}, .offsets_bytes = {0}}, 160),
            "a.h5: expected a table of 2 chunks, found 1");
  EXPECT_EQ(error_of({10, 4}, {.chunk_shape = {5, 0}, .offsets_bytes = {0, 0}}, 160),
            "a.h5: expected chunks of 2 axes, all longer than 0, found shape (5, 0)");
  EXPECT_EQ(error_of({10, 4}, {.chunk_shape = {5}, .offsets_bytes = {0, 0}}, 160),
            "a.h5: expected chunks of 2 axes, all longer than 0, found shape (5,)");
  EXPECT_EQ(error_of({10}, {.chunk_shape = {UINT64_MAX / 2}, .offsets_bytes = {0}}, 160),
            "a.h5: expected chunks of less than 2^62 bytes, found shape (9223372036854775807,) of "
            "4-byte items");
  EXPECT_EQ(error_of({10}, {.chunk_shape = {10}, .offsets_bytes = {0}, .shards = {3}}, 160),
            "a.h5: chunk 0 is in file 3, but there are only 1");
  EXPECT_EQ(error_of({10}, {.chunk_shape = {10}, .offsets_bytes = {0}, .shards = {0, 0}}, 160),
            "a.h5: expected a file for each of 1 chunks, found 2");
  const std::vector<std::byte> short_fill(3);
  EXPECT_EQ(error_of({10}, {.chunk_shape = {10}, .offsets_bytes = {0}, .fill = short_fill}, 160),
            "a.h5: expected a fill value of 4 bytes, found 3");
  EXPECT_EQ(error_of({std::uint64_t{1} << 40}, {.chunk_shape = {1}, .offsets_bytes = {0}}, 160),
            "a.h5: expected at most 2^32 chunks, found more: shape (1099511627776,) in chunks of "
            "(1,)");
}

}  // namespace
}  // namespace lowtide::chunk_grid_test

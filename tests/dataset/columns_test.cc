#include "dataset/columns.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "dataset/ragged.h"
#include "dataset/rows.h"

namespace lowtide::columns_test {
namespace {

using Numbers = std::vector<std::uint64_t>;

// Files in memory, numbered in one list, whose every element is of eight bytes and known.
struct FakeDisk {
  std::vector<Numbers> files;

  // Rows of `width` elements in files of these lengths. Row r has the elements value + r * width,
  // value + r * width + 1, ...
  std::shared_ptr<const Rows> rows(const Numbers& lengths, std::uint64_t width, std::uint64_t value,
                                   bool fortran_order = false) {
    const auto first = static_cast<std::uint32_t>(files.size());
    std::vector<RowsFile> parts;
    for (const std::uint64_t length : lengths) {
      Layout layout;
      layout.format = "raw";
      layout.dtype = DType::parse("<u8");
      layout.shape = {length, width};
      layout.fortran_order = fortran_order;
      parts.push_back(
          {make_layout(std::move(layout), "test"), {"file" + std::to_string(files.size())}});
      Numbers& file = files.emplace_back(length * width);
      for (std::uint64_t row = 0; row < length; ++row) {
        for (std::uint64_t at = 0; at < width; ++at) {
          file[fortran_order ? at * length + row : row * width + at] = value++;
        }
      }
    }
    return std::make_shared<const Rows>(Rows(parts).from_shard(first));
  }

  void serve(const std::vector<Read>& reads) const {
    for (const Read& read : reads) {
      const Numbers& file = files.at(read.from.shard);
      ASSERT_LE(read.from.end_bytes(), file.size() * 8);
      std::memcpy(read.into,
                  reinterpret_cast<const std::byte*>(file.data()) + read.from.offset_bytes,
                  read.from.size_bytes);
    }
  }
};

// What these samples have in a field, one after the other, with room for `each` elements of each.
Numbers read_field(const FakeDisk& disk, const Columns& columns, std::size_t field,
                   const Numbers& samples, std::uint64_t each) {
  constexpr std::uint64_t kUntouched = 777'777;
  Numbers found(samples.size() * each, kUntouched);
  std::vector<std::byte*> targets;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    targets.push_back(reinterpret_cast<std::byte*>(found.data() + i * each));
  }
  for (std::uint64_t part = 0; part < columns.parts(); ++part) {
    std::vector<Read> reads;
    columns.locate(field, part, samples, targets, reads);
    EXPECT_LE(reads.size(), samples.size() * columns.reads_per_part());
    disk.serve(reads);
  }
  std::erase(found, kUntouched);
  return found;
}

TEST(Columns, BringTheRowsOfEachFieldFromItsFiles) {
  FakeDisk disk;
  const auto wide = disk.rows({3, 0, 7}, 3, 0);
  const auto turned = disk.rows({6, 4}, 2, 1000, /*fortran_order=*/true);
  const auto narrow = disk.rows({1, 9}, 1, 5000);
  const Columns columns({{{.data = wide, .first_shard = 0},
                          {.data = turned, .first_shard = 3},
                          {.data = narrow, .first_shard = 5}}});
  EXPECT_EQ(columns.size(), 10U);
  EXPECT_EQ(columns.fields(), 3U);
  EXPECT_EQ(columns.sample_bytes(), (3 + 2 + 1) * 8U);
  EXPECT_EQ(columns.data_bytes(), 10 * (3 + 2 + 1) * 8U);
  EXPECT_EQ(columns.parts(), 2U) << "of the one in Fortran order";
  EXPECT_FALSE(columns.ragged());
  for (const Numbers& samples : {Numbers{0, 5, 9}, Numbers{2, 3, 3, 4}, Numbers{7}}) {
    Numbers a, b, c;
    for (const std::uint64_t row : samples) {
      for (std::uint64_t at = 0; at < 3; ++at) a.push_back(row * 3 + at);
      for (std::uint64_t at = 0; at < 2; ++at) b.push_back(1000 + row * 2 + at);
      c.push_back(5000 + row);
    }
    EXPECT_EQ(read_field(disk, columns, 0, samples, 3), a);
    EXPECT_EQ(read_field(disk, columns, 1, samples, 2), b);
    EXPECT_EQ(read_field(disk, columns, 2, samples, 1), c);
  }
  for (std::uint32_t shard = 0; shard < 7; ++shard) {
    if (shard == 1) continue;  // no rows, so nothing is read from there
    EXPECT_EQ(columns.path(shard), "file" + std::to_string(shard));
  }
}

TEST(Columns, CopyWhatIsHeldWithoutAnyRead) {
  FakeDisk disk;
  const auto wide = disk.rows({10}, 3, 0);
  for (const std::uint64_t width : {1, 2, 5}) {
    const auto held = disk.rows({10}, width, 100);
    const Numbers& bytes = disk.files.back();
    const Columns columns({{{.data = wide},
                            {.data = held,
                             .first_shard = 1,
                             .held = reinterpret_cast<const std::byte*>(bytes.data())}}});
    EXPECT_EQ(columns.data_bytes(), 10 * 3 * 8U) << "that must be read";
    EXPECT_EQ(columns.sample_bytes(), (3 + width) * 8);
    Numbers out(2 * width);
    const std::vector<std::byte*> targets{reinterpret_cast<std::byte*>(out.data()),
                                          reinterpret_cast<std::byte*>(out.data() + width)};
    std::vector<Read> reads;
    columns.locate(1, 0, Numbers{9, 4}, targets, reads);
    EXPECT_TRUE(reads.empty());
    for (std::uint64_t at = 0; at < width; ++at) {
      EXPECT_EQ(out[at], 100 + 9 * width + at);
      EXPECT_EQ(out[width + at], 100 + 4 * width + at);
    }
  }
}

TEST(Columns, NumberTheSamplesOfAMixtureInTheirSource) {
  FakeDisk disk;
  const auto one = disk.rows({3}, 2, 0), two = disk.rows({1, 3}, 2, 100),
             three = disk.rows({5}, 2, 200, /*fortran_order=*/true);
  const Columns columns({{{.data = one, .first_shard = 0}},
                         {{.data = two, .first_shard = 1}},
                         {{.data = three, .first_shard = 3}}});
  EXPECT_EQ(columns.size(), 12U);
  EXPECT_EQ(columns.parts(), 2U) << "the largest of all sources";
  Numbers samples(12);
  std::iota(samples.begin(), samples.end(), 0);
  Numbers numbers = samples;
  Numbers sources;
  columns.number(numbers, &sources);
  EXPECT_EQ(numbers, (Numbers{0, 1, 2, 0, 1, 2, 3, 0, 1, 2, 3, 4}));
  EXPECT_EQ(sources, (Numbers{0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2}));
  EXPECT_EQ(read_field(disk, columns, 0, samples, 2),
            (Numbers{0,   1,   2,   3,   4,   5,   100, 101, 102, 103, 104, 105,
                     106, 107, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209}));
  EXPECT_EQ(read_field(disk, columns, 0, {11, 0, 3, 2}, 2),
            (Numbers{208, 209, 0, 1, 100, 101, 4, 5}));
}

struct RaggedColumn {
  RaggedColumn(FakeDisk& disk, std::vector<std::int64_t> ends, std::uint64_t value)
      : offsets(std::move(ends)) {
    const auto first_shard = static_cast<std::uint32_t>(disk.files.size());
    const auto rows = disk.rows({2, 40}, 1, value);
    part.data = std::make_shared<const Ragged>(rows, std::make_shared<ListedOffsets>(offsets));
    part.first_shard = first_shard;
  }
  [[nodiscard]] Columns::Part at(std::uint32_t table) const {
    Columns::Part placed = part;
    placed.table = table;
    return placed;
  }
  std::vector<std::int64_t> offsets;
  Columns::Part part;
};

TEST(Columns, HaveTheLengthsOfEachTableInEachSource) {
  FakeDisk disk;
  const auto label = disk.rows({3}, 1, 900);
  const RaggedColumn a(disk, {0, 3, 3, 5}, 100), b(disk, {0, 1, 2, 9}, 200);
  const RaggedColumn c(disk, {0, 4, 5, 5}, 300), d(disk, {0, 0, 6, 7}, 400);
  // The first source has the same samples in two tables, and the second has others.
  const Columns columns({{a.at(0), {.data = label, .first_shard = 0}, a.at(1)},
                         {c.at(0), {.data = label, .first_shard = 0}, d.at(1)}});
  EXPECT_EQ(columns.tables(), 2U);
  EXPECT_TRUE(columns.ragged());
  EXPECT_EQ(columns.field(0).table, 0U);
  EXPECT_EQ(columns.field(1).table, std::nullopt);
  EXPECT_EQ(columns.field(2).table, 1U);
  EXPECT_EQ(columns.sample_bytes(), (4 + 1 + 6) * 8U) << "of the source with the longest samples";
  const Numbers samples{0, 1, 2, 3, 4, 5};
  Numbers lengths(6);
  columns.lengths(0, samples, lengths);
  EXPECT_EQ(lengths, (Numbers{3, 0, 2, 4, 1, 0}));
  columns.lengths(1, samples, lengths);
  EXPECT_EQ(lengths, (Numbers{3, 0, 2, 0, 6, 1}));
  EXPECT_EQ(read_field(disk, columns, 0, samples, 10),
            (Numbers{100, 101, 102, 103, 104, 300, 301, 302, 303, 304}));
  EXPECT_EQ(read_field(disk, columns, 2, samples, 10),
            (Numbers{100, 101, 102, 103, 104, 400, 401, 402, 403, 404, 405, 406}));
  const Columns two({{a.at(0), b.at(1)}});
  columns.lengths(1, Numbers{2}, std::span(lengths).first(1));
  EXPECT_EQ(lengths[0], 2U);
  two.lengths(1, Numbers{2}, std::span(lengths).first(1));
  EXPECT_EQ(lengths[0], 7U);
}

TEST(Columns, ShareATableIfTheyAreOneRaggedColumn) {
  FakeDisk disk;
  const RaggedColumn a(disk, {0, 3, 3, 5}, 100), b(disk, {0, 3, 3, 5}, 200);
  const Columns columns({{a.at(0), b.at(0)}});
  EXPECT_EQ(columns.tables(), 1U);
  EXPECT_EQ(columns.field(0).table, 0U);
  EXPECT_EQ(columns.field(1).table, 0U);
}

TEST(Columns, AHeldColumnIsCopiedOnceHoweverManyPartsItsFileHas) {
  FakeDisk disk;
  const auto data = disk.rows({5}, 3, 100, /*fortran_order=*/true);
  const auto beside = disk.rows({5}, 2, 500);
  ASSERT_EQ(data->parts(), 3U);
  Numbers held(15);
  std::iota(held.begin(), held.end(), 100U);
  Columns::Part part{.data = data};
  part.held = reinterpret_cast<const std::byte*>(held.data());
  const Columns columns({{part, {.data = beside, .first_shard = 1}}});
  EXPECT_EQ(columns.parts(), 1U);
  EXPECT_EQ(read_field(disk, columns, 0, {4, 0}, 3), (Numbers{112, 113, 114, 100, 101, 102}));
  EXPECT_EQ(read_field(disk, columns, 1, {4, 0}, 2), (Numbers{508, 509, 500, 501}));
}

}  // namespace
}  // namespace lowtide::columns_test

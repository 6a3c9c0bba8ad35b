// Rows that do not touch: each has bytes before it that belong to no row.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "dataset/rows.h"

namespace lowtide::rows_gaps_test {
namespace {

constexpr std::uint64_t kColumns = 3;
constexpr std::uint64_t kRowBytes = kColumns * 8;
constexpr std::uint64_t kMark = ~std::uint64_t{0};  // what is between rows

// Files of these numbers of rows; an element holds its own number. Every second file has no gaps.
struct GappedFiles {
  std::vector<std::vector<std::uint64_t>> files;
  Rows rows;

  explicit GappedFiles(const std::vector<std::uint64_t>& counts) {
    std::uint64_t next = 0;
    for (const std::uint64_t count : counts) {
      const bool gaps = files.size() % 2 == 0;
      std::vector<std::uint64_t> file;
      for (std::uint64_t row = 0; row < count; ++row) {
        if (gaps) file.push_back(kMark);
        for (std::uint64_t i = 0; i < kColumns; ++i) file.push_back(next++);
      }
      Layout layout;
      layout.dtype = DType::parse("<u8");
      layout.shape = {count, kColumns};
      if (gaps) {
        layout.data_offset_bytes = 8;
        layout.row_prefix.assign(8, '\xff');
      }
      rows.add({make_layout(layout, "test"), {"file" + std::to_string(files.size())}});
      files.push_back(std::move(file));
    }
  }

  void serve(const std::vector<Read>& reads) const {
    for (const Read& read : reads) {
      const auto& file = files.at(read.from.shard);
      ASSERT_LE(read.from.end_bytes(), file.size() * 8);
      std::memcpy(read.into,
                  reinterpret_cast<const std::byte*>(file.data()) + read.from.offset_bytes,
                  read.from.size_bytes);
    }
  }
};

std::byte* bytes_of(std::vector<std::uint64_t>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

TEST(RowsWithGaps, EveryRunIsWithoutWhatIsBetween) {
  const GappedFiles files({4, 3, 1, 2});
  ASSERT_TRUE(files.rows.has_gaps());
  for (std::uint64_t first = 0; first <= 10; ++first) {
    for (std::uint64_t count = 0; first + count <= 10; ++count) {
      std::vector<std::uint64_t> out(count * kColumns);
      std::vector<Read> reads;
      files.rows.locate_run(first, count, bytes_of(out), reads);
      files.serve(reads);
      EXPECT_EQ(out, numbers(first * kColumns, count * kColumns));
      EXPECT_LE(reads.size(), files.rows.most_reads(count));
    }
  }
}

TEST(RowsWithGaps, AnyRowsAreLocatedAlsoInARow) {
  const GappedFiles files({4, 3, 1, 2});
  for (const std::vector<std::uint64_t>& samples :
       {std::vector<std::uint64_t>{9, 0, 3, 3, 7, 4}, numbers(0, 10), numbers(2, 5)}) {
    std::vector<std::uint64_t> out(samples.size() * kColumns);
    std::vector<std::byte*> targets;
    for (std::size_t i = 0; i < samples.size(); ++i)
      targets.push_back(bytes_of(out) + i * kRowBytes);
    std::vector<Read> reads;
    files.rows.locate(0, 0, samples, targets, reads);
    files.serve(reads);
    for (std::size_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i], samples[i / kColumns] * kColumns + i % kColumns);
  }
}

TEST(RowsWithGaps, PartsOfRowsAreLocated) {
  const GappedFiles files({4, 3});
  std::vector<std::uint64_t> out(2);
  const std::vector<std::uint64_t> samples{6, 2};
  const std::vector<std::byte*> targets{bytes_of(out), bytes_of(out) + 8};
  std::vector<Read> reads;
  files.rows.locate_inside(16, 8, samples, targets, reads);
  files.serve(reads);
  EXPECT_EQ(out, (std::vector<std::uint64_t>{20, 8}));
}

TEST(RowsWithGaps, FlatElementsSkipWhatIsBetween) {
  const GappedFiles files({4, 3, 1, 2});
  const Rows flat = files.rows.flat();
  ASSERT_EQ(flat.size(), 30u);
  EXPECT_TRUE(flat.has_gaps());
  for (std::uint64_t first = 0; first <= 30; ++first) {
    for (std::uint64_t count = 0; first + count <= 30; ++count) {
      std::vector<std::uint64_t> out(count);
      std::vector<Read> reads;
      flat.locate_run(first, count, bytes_of(out), reads);
      files.serve(reads);
      EXPECT_EQ(out, numbers(first, count));
      EXPECT_LE(reads.size(), flat.most_reads(count));
    }
  }
}

TEST(RowsWithGaps, WhatIsBeforeARowIsKnown) {
  const GappedFiles files({4});
  EXPECT_EQ(files.rows.row_prefix(), std::string(8, '\xff'));
  EXPECT_EQ(files.rows.first_offset_bytes(), 8u);
}

}  // namespace
}  // namespace lowtide::rows_gaps_test

#include "loader/cutter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "dataset/rows.h"
#include "order/order.h"
#include "os/temp_folder.h"

namespace lowtide::cutter_test {
namespace {

Rows rows_of(std::uint64_t rows, std::uint64_t columns, bool fortran_order = false) {
  Layout layout;
  layout.dtype = DType::parse("<u2");
  layout.shape = {rows, columns};
  layout.fortran_order = fortran_order;
  return Rows({{make_layout(std::move(layout), "test"), {"test"}}});
}

// Consecutive positions of an order, in batches of 100.
std::vector<std::vector<std::uint64_t>> batches_of(const Order& order, std::uint64_t samples) {
  std::vector<std::vector<std::uint64_t>> batches;
  for (std::uint64_t first = 0; first < samples; first += 100) {
    batches.emplace_back(std::min<std::uint64_t>(100, samples - first));
    order.fill(2, first, batches.back());
  }
  return batches;
}

void start(Cutter* cutter, const std::vector<std::vector<std::uint64_t>>& batches, bool sort) {
  cutter->begin(batches.size(), sort);
  for (const auto& batch : batches) cutter->add(batch);
  cutter->end();
}

TEST(Cutter, SortsTheSamplesOfAGroupLikeStdSort) {
  for (const std::uint64_t size : {1ULL, 5ULL, 2047ULL, 2048ULL, 100'000ULL, 5'000'000ULL}) {
    const Rows rows = rows_of(size, 1);
    const auto order = make_shuffle(size, 3);
    const std::uint64_t count = std::min<std::uint64_t>(size, 850);
    const auto batches = batches_of(*order, count);
    Cutter cutter(rows, 100);
    EXPECT_TRUE(cutter.exhausted());
    start(&cutter, batches, true);
    EXPECT_EQ(cutter.left(), count);
    std::vector<std::uint64_t> expected(count), found;
    order->fill(2, 0, expected);
    std::ranges::sort(expected);
    std::vector<Read> reads;
    std::byte nowhere{};
    cutter.cut(
        count,
        [&](const Cutter::Place& place) {
          found.push_back(batches[place.batch][place.row]);
          return &nowhere;
        },
        &reads);
    EXPECT_EQ(found, expected) << size;
    EXPECT_TRUE(cutter.exhausted());
    EXPECT_EQ(cutter.left(), 0U);
  }
}

// Reads all batches in sets of at most `most` samples and compares them.
void read_all(bool fortran_order, bool sort, std::uint64_t most) {
  constexpr std::uint64_t kRows = 1003, kColumns = 6, kRowBytes = kColumns * 2;
  const Rows rows = rows_of(kRows, kColumns, fortran_order);
  const std::string held = pattern(kRows * kRowBytes);
  const auto order = make_shuffle(kRows, 1);
  const auto batches = batches_of(*order, kRows);
  Cutter cutter(rows, 100);
  for (int again = 0; again < 2; ++again) {  // a cutter is used for one group after the other
    std::vector<std::string> memory(batches.size(), std::string(100 * kRowBytes, '\0'));
    start(&cutter, batches, sort);
    std::vector<Read> reads;
    while (!cutter.exhausted()) {
      std::uint64_t targets = 0;
      cutter.cut(
          most,
          [&](const Cutter::Place& place) {
            ++targets;
            return reinterpret_cast<std::byte*>(memory[place.batch].data()) + place.row * kRowBytes;
          },
          &reads);
      EXPECT_GT(targets, 0U);
      EXPECT_LE(targets, most);
      for (const Read& read : reads) {
        std::memcpy(read.into, held.data() + read.from.offset_bytes, read.from.size_bytes);
      }
    }
    for (std::size_t b = 0; b < batches.size(); ++b) {
      for (std::size_t i = 0; i < batches[b].size(); ++i) {
        for (std::uint64_t column = 0; column < kColumns; ++column) {
          const std::uint64_t sample = batches[b][i];
          const std::uint64_t cell =
              fortran_order ? column * kRows + sample : sample * kColumns + column;
          ASSERT_EQ(memory[b].substr((i * kColumns + column) * 2, 2), held.substr(cell * 2, 2))
              << "batch " << b << ", row " << i;
        }
      }
    }
  }
}

TEST(Cutter, BringsEverySampleToItsPlace) {
  for (const bool fortran_order : {false, true}) {
    for (const bool sort : {false, true}) {
      for (const std::uint64_t most : {1U, 7U, 100U, 250U, 100'000U}) {
        read_all(fortran_order, sort, most);
      }
    }
  }
}

TEST(Cutter, TakesASampleThatComesTwiceTwice) {
  const Rows rows = rows_of(10, 1);
  Cutter cutter(rows, 3);
  start(&cutter, {{3, 3, 9}, {0, 3}, {9}}, true);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  std::byte nowhere{};
  std::vector<Read> reads;
  cutter.cut(
      6,
      [&](const Cutter::Place& place) {
        places.emplace_back(place.batch, place.row);
        return &nowhere;
      },
      &reads);
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> expected{{1, 0}, {0, 0}, {0, 1},
                                                                      {1, 1}, {0, 2}, {2, 0}};
  EXPECT_EQ(places, expected);
}

TEST(Cutter, HasNothingToCutWhereThereAreNoBytes) {
  const Rows nothing = rows_of(10, 0);
  Cutter cutter(nothing, 5);
  start(&cutter, {{1, 2, 3}}, true);
  EXPECT_TRUE(cutter.exhausted());
  const Rows rows = rows_of(10, 1);
  Cutter empty(rows, 5);
  start(&empty, {}, true);
  EXPECT_TRUE(empty.exhausted());
}

TEST(Cutter, KnowsWhatFitsIntoAKey) {
  const Rows rows = rows_of(std::uint64_t{1} << 40, 1);
  const Cutter cutter(rows, 1 << 12);
  EXPECT_TRUE(cutter.can_sort(1 << 11));
  EXPECT_FALSE(cutter.can_sort(std::uint64_t{1} << 13));
}

}  // namespace
}  // namespace lowtide::cutter_test

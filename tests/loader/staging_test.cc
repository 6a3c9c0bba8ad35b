#include "loader/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "dataset/rows.h"
#include "os/temp_folder.h"

namespace lowtide::staging_test {
namespace {

Rows rows_of(std::uint64_t rows, std::uint64_t columns, bool fortran_order = false) {
  Layout layout;
  layout.dtype = DType::parse("<u2");
  layout.shape = {rows, columns};
  layout.fortran_order = fortran_order;
  return Rows({{make_layout(std::move(layout), "test"), {"test"}}});
}

struct Piece {
  std::vector<std::uint64_t> samples;
  std::vector<std::byte*> targets;
  std::vector<Read> reads;
};

void serve(const std::vector<Read>& reads, const std::string& held) {
  for (const Read& read : reads) {
    std::memcpy(read.into, held.data() + read.from.offset_bytes, read.from.size_bytes);
  }
}

TEST(Staging, SortsTheSamplesOfAWindowLikeStdSort) {
  for (const std::uint64_t size : {1ULL, 5ULL, 2047ULL, 2048ULL, 100'000ULL, 5'000'000ULL}) {
    const Rows rows = rows_of(size, 1);
    const auto order = make_shuffle(size, 3);
    const Schedule schedule{.size = size, .epoch = 2, .batch_size = 100};
    const std::uint64_t steps = std::min<std::uint64_t>(schedule.turns(), 9);
    Staging staging(rows, *order, schedule, 1000);
    Window window;
    staging.plan(0, steps, &window);
    const std::uint64_t count = std::min<std::uint64_t>(size, steps * 100);
    ASSERT_EQ(window.samples, count);
    ASSERT_EQ(staging.submittable(window), count);
    std::vector<std::uint64_t> twin(count);
    order->fill(2, 0, twin);
    std::sort(twin.begin(), twin.end());
    Piece piece;
    staging.take_piece(static_cast<std::uint32_t>(count), &window, &piece.samples, &piece.targets,
                       &piece.reads);
    EXPECT_EQ(piece.samples, twin) << size;
    EXPECT_EQ(staging.submittable(window), 0U);
  }
}

// Reads a whole epoch by windows of two steps, in pieces, and compares every batch.
void run_epoch(bool fortran_order, std::uint32_t slots, std::uint32_t piece_samples) {
  constexpr std::uint64_t kRows = 1003, kColumns = 6, kBatch = 50, kRowBytes = kColumns * 2;
  const Rows rows = rows_of(kRows, kColumns, fortran_order);
  const std::string held = pattern(kRows * kRowBytes);
  const auto order = make_shuffle(kRows, 1);
  const Schedule schedule{.size = kRows, .batch_size = kBatch};
  Staging staging(rows, *order, schedule, slots);
  std::string batch(kBatch * kRowBytes, '\0');
  Window window;
  for (std::uint64_t first = 0; first < schedule.turns(); first += 2) {
    const std::uint64_t last = std::min(first + 2, schedule.turns());
    staging.plan(first, last, &window);
    Piece piece;
    while (staging.submittable(window) > 0) {
      staging.take_piece(piece_samples, &window, &piece.samples, &piece.targets, &piece.reads);
      ASSERT_LE(piece.samples.size(), piece_samples);
      serve(piece.reads, held);
    }
    for (std::uint64_t step = first; step < last; ++step) {
      std::vector<std::uint64_t> samples(schedule.count(step));
      schedule.fill(*order, step, kRows, samples);
      staging.gather(&window, samples, reinterpret_cast<std::byte*>(batch.data()));
      for (std::size_t i = 0; i < samples.size(); ++i) {
        for (std::uint64_t column = 0; column < kColumns; ++column) {
          const std::uint64_t cell =
              fortran_order ? column * kRows + samples[i] : samples[i] * kColumns + column;
          ASSERT_EQ(batch.substr((i * kColumns + column) * 2, 2), held.substr(cell * 2, 2))
              << "step " << step << ", row " << i;
        }
      }
    }
    EXPECT_EQ(window.next_step, window.last_step);
  }
}

TEST(Staging, GathersEveryBatchOfAnEpoch) {
  for (const bool fortran_order : {false, true}) {
    run_epoch(fortran_order, 100, 1000);
    run_epoch(fortran_order, 100, 7);
    run_epoch(fortran_order, 500, 33);
  }
}

TEST(Staging, WaitsForSlotsThatAnotherWindowStillHas) {
  const Rows rows = rows_of(100, 1);
  const auto order = make_sequential(100);
  const Schedule schedule{.size = 100, .batch_size = 10};
  Staging staging(rows, *order, schedule, 30);
  Window one, two;
  Piece piece;
  staging.plan(0, 2, &one);
  EXPECT_EQ(staging.submittable(one), 20U);
  staging.take_piece(20, &one, &piece.samples, &piece.targets, &piece.reads);
  staging.plan(2, 4, &two);
  EXPECT_EQ(staging.submittable(two), 10U) << "what is free";
  std::vector<std::byte> batch(20);
  const std::vector<std::uint64_t> first{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  staging.gather(&one, first, batch.data());
  EXPECT_EQ(staging.submittable(two), 20U);
}

TEST(Staging, TakesASampleThatComesTwiceTwice) {
  const Rows rows = rows_of(10, 1);
  const std::string held = pattern(20);
  const std::vector<std::uint64_t> mine{3, 3, 9, 0, 3, 9};
  const auto order = make_explicit(std::span<const std::uint64_t>(mine), 10);
  const Schedule schedule{.size = 6, .batch_size = 6};
  Staging staging(rows, *order, schedule, 6);
  Window window;
  Piece piece;
  staging.plan(0, 1, &window);
  staging.take_piece(6, &window, &piece.samples, &piece.targets, &piece.reads);
  serve(piece.reads, held);
  std::string batch(12, '\0');
  staging.gather(&window, mine, reinterpret_cast<std::byte*>(batch.data()));
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(batch.substr(i * 2, 2), held.substr(mine[i] * 2, 2));
  }
}

}  // namespace
}  // namespace lowtide::staging_test

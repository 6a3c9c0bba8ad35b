// lookahead_rig.h - a small matrix behind an engine that ends reads in any order, and the batches
// that a Lookahead over it must give.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "dataset/rows.h"
#include "loader/lookahead.h"
#include "support/data_file.h"
#include "support/fake_engine.h"

namespace lowtide {

inline constexpr std::uint64_t kMiB = 1024 * 1024;
inline constexpr std::uint64_t kRows = 2003;
inline constexpr std::uint64_t kColumns = 12;  // of 4 bytes
inline constexpr std::uint64_t kRowBytes = kColumns * 4;
inline constexpr Prospect kHeld{.resident = true, .held = true, .gap_bytes = 0};
inline constexpr Prospect kOnDisk{.resident = false, .held = false, .gap_bytes = 1024 * 1024};
inline constexpr Prospect kInMemory{.resident = true, .held = false, .gap_bytes = 0};

inline Rows rows_of(bool fortran_order = false, std::uint64_t rows = kRows,
                    std::uint64_t columns = kColumns) {
  Layout layout;
  layout.dtype = DType::parse("<f4");
  layout.shape = {rows, columns};
  layout.fortran_order = fortran_order;
  return Rows({{make_layout(std::move(layout), "data.npy"), {"data.npy"}}});
}

inline const std::string& held() {
  static const std::string bytes = pattern(kRows * kRowBytes);
  return bytes;
}

inline std::string row_in_c_order(std::uint64_t row, bool fortran_order) {
  if (!fortran_order) return held().substr(row * kRowBytes, kRowBytes);
  std::string text;
  for (std::uint64_t c = 0; c < kColumns; ++c) text += held().substr((c * kRows + row) * 4, 4);
  return text;
}

inline std::vector<std::uint64_t> heard(const Batch& batch) {
  return {batch.index().begin(), batch.index().end()};
}

struct LookaheadRig {
  explicit LookaheadRig(std::uint64_t budget_bytes = 4 * kMiB, bool shuffle = true,
                        bool fortran_order = false)
      : fortran(fortran_order),
        rows(rows_of(fortran_order)),
        order(shuffle ? make_shuffle(kRows, 5) : make_sequential(kRows)),
        budget(budget_bytes) {}

  std::unique_ptr<Lookahead> load(std::uint64_t batch_size, std::uint64_t first_step = 0,
                                  Engine* other = nullptr) {
    schedule = {.size = kRows, .epoch = 1, .batch_size = batch_size};
    return std::make_unique<Lookahead>(
        LookaheadInputs{rows, *order, other != nullptr ? *other : fake, budget}, schedule,
        first_step);
  }
  void expect_batch(const Batch& batch, std::uint64_t step) const {
    ASSERT_EQ(batch.step(), step);
    ASSERT_EQ(batch.epoch(), 1U);
    std::vector<std::uint64_t> samples(schedule.count(step));
    order->fill(1, step * schedule.batch_size, samples);
    ASSERT_EQ(heard(batch), samples);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::string row = row_in_c_order(samples[i], fortran);
      ASSERT_EQ(std::memcmp(batch.column(0).data() + i * kRowBytes, row.data(), kRowBytes), 0)
          << "step " << step << ", row " << i;
    }
  }
  // Everything that is left, each batch checked.
  void drain(Lookahead& loader, std::uint64_t step = 0) const {
    for (; step < schedule.turns(); ++step) {
      const Batch batch = loader.next(std::chrono::minutes(1)).value();
      ASSERT_TRUE(batch) << "step " << step;
      expect_batch(batch, step);
    }
    EXPECT_FALSE(loader.next(std::chrono::milliseconds(0)).value());
  }

  bool fortran;
  Rows rows;
  std::unique_ptr<Order> order;
  Budget budget;
  FakeEngine fake{{held()}};
  Schedule schedule;
};

// The rows of the matrix, for data sets that are other in one respect.
class OtherRows : public Dataset {
 public:
  std::uint64_t size() const noexcept override { return rows_.size(); }
  std::uint64_t sample_bytes() const noexcept override { return rows_.sample_bytes(); }
  std::uint64_t parts() const noexcept override { return 1; }
  std::uint64_t reads_per_part() const noexcept override { return 1; }
  std::uint64_t data_bytes() const noexcept override { return rows_.data_bytes(); }
  std::string path(std::uint32_t shard) const override { return rows_.path(shard); }
  void locate(std::size_t field, std::uint64_t part, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override {
    rows_.locate(field, part, samples, targets, out);
  }

 private:
  Rows rows_ = rows_of();
};

}  // namespace lowtide

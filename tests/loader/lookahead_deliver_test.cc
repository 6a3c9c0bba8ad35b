// Batches that are not what was read: Dataset::deliver makes them.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/lookahead_rig.h"

namespace lowtide::lookahead_deliver_test {
namespace {

using std::chrono::milliseconds;

// Rows that are delivered backwards, each byte turned over: what deliver() makes is not what was
// read. Row `poison` cannot be delivered.
class TurnedRows final : public OtherRows {
 public:
  explicit TurnedRows(std::uint64_t poison_row = kRows) : poison(poison_row) {}

  bool as_read() const noexcept override { return false; }
  std::uint64_t batch_bytes(std::uint64_t samples) const override {
    return samples * kRowBytes + 1;  // and how many, so that it is no multiple of a row
  }
  void deliver(const ReadSamples& read, std::byte* out) const override {
    const std::size_t count = read.samples.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (read.samples[i] == poison) throw std::invalid_argument("row " + std::to_string(poison));
      for (std::size_t b = 0; b < kRowBytes; ++b) {
        out[(i + 1) * kRowBytes - 1 - b] = ~read.bytes[i * kRowBytes + b];
      }
    }
    out[count * kRowBytes] = static_cast<std::byte>(count);
  }

  const std::uint64_t poison;
};

struct TurnedRig {
  explicit TurnedRig(const Prospect& prospect, std::uint64_t poison = kRows) : rows(poison) {
    fake.set_prospect(prospect);
  }
  std::unique_ptr<Lookahead> load(const Schedule& wanted, std::uint64_t most_ahead = 0) {
    schedule = wanted;
    return std::make_unique<Lookahead>(LookaheadInputs{rows, *order, fake, budget}, schedule, 0,
                                       most_ahead);
  }
  void expect_next(Lookahead& loader, std::uint64_t turn) const {
    const Batch batch = loader.next(std::chrono::minutes(1)).value();
    ASSERT_TRUE(batch) << "turn " << turn;
    const Schedule::Turn at = schedule.at(turn);
    ASSERT_EQ(batch.epoch(), at.epoch);
    ASSERT_EQ(batch.step(), at.step);
    std::vector<std::uint64_t> samples(schedule.count(turn));
    schedule.fill(*order, turn, order->size(), samples);
    ASSERT_EQ(heard(batch), samples);
    const std::byte* out = batch.column(0).data();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::string row = row_in_c_order(samples[i], false);
      for (std::size_t b = 0; b < kRowBytes; ++b) {
        ASSERT_EQ(out[(i + 1) * kRowBytes - 1 - b], ~static_cast<std::byte>(row[b]));
      }
    }
    ASSERT_EQ(out[samples.size() * kRowBytes], static_cast<std::byte>(samples.size()));
  }

  TurnedRows rows;
  std::unique_ptr<Order> order = make_shuffle(kRows, 5);
  Budget budget{4 * kMiB};
  FakeEngine fake{{held()}};
  Schedule schedule;
};

TEST(Lookahead, MakesBatchesOverTheSameWayWhereverTheyComeFrom) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const std::uint64_t batch_size : {1UL, 7UL, 100UL, kRows}) {
      for (const bool inside_submit : {false, true}) {
        TurnedRig rig(prospect);
        rig.fake.inline_ = inside_submit;
        const auto loader = rig.load({.size = kRows, .batch_size = batch_size});
        for (std::uint64_t turn = 0; turn < rig.schedule.turns(); ++turn) {
          rig.expect_next(*loader, turn);
        }
        EXPECT_FALSE(loader->next(milliseconds(0)).value());
      }
    }
  }
}

TEST(Lookahead, GoesOnOverEpochsWithoutEnd) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const bool drop_last : {false, true}) {
      TurnedRig rig(prospect);
      const auto loader = rig.load({.size = kRows,
                                    .epoch = 3,
                                    .batch_size = 90,
                                    .rank = 0,
                                    .world_size = 2,
                                    .drop_last = drop_last,
                                    .epochs = Schedule::kForever,
                                    .position = 300,
                                    .step = 2,
                                    .skips = {{3, 480, 660}, {5, 0, 1800}}});
      for (std::uint64_t turn = 0; turn < 60; ++turn) rig.expect_next(*loader, turn);
    }
  }
}

TEST(Lookahead, GivesAnErrorOfDeliverWithItsStepOnEveryTry) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    TurnedRig rig(prospect, 1234);
    const auto loader = rig.load({.size = kRows, .epoch = 1, .batch_size = 50});
    const std::uint64_t step = *rig.order->position_of(1, 1234) / 50;
    int errors = 0;
    for (int i = 0; i < 60; ++i) {
      try {
        const Batch batch = loader->next(std::chrono::minutes(1)).value();
        ASSERT_TRUE(batch);
        ASSERT_LT(batch.step(), step);
      } catch (const std::invalid_argument& error) {
        EXPECT_EQ(error.what(), "row 1234 (epoch 1, step " + std::to_string(step) + ")");
        ++errors;
      }
    }
    EXPECT_GT(errors, 10);
  }
}

TEST(Lookahead, ReadsNoFurtherAheadThanItMay) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const std::uint64_t most_ahead : {1, 2, 3}) {
      TurnedRig rig(prospect);
      const auto loader = rig.load({.size = kRows, .batch_size = 50}, most_ahead);
      rig.expect_next(*loader, 0);
      std::this_thread::sleep_for(milliseconds(20));
      // A batch is one set of 50 reads here; a few may have been read together.
      EXPECT_LE(rig.fake.submitted(), 2 * (most_ahead + 2));
      for (std::uint64_t turn = 1; turn < rig.schedule.turns(); ++turn) {
        rig.expect_next(*loader, turn);
      }
    }
  }
}

}  // namespace
}  // namespace lowtide::lookahead_deliver_test

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "loader/lookahead.h"
#include "lowtide/error.h"
#include "support/data_file.h"
#include "support/lookahead_rig.h"

namespace lowtide::lookahead_ragged_test {
namespace {

using std::chrono::minutes;

// Samples of these lengths, in units of four bytes, one after the other in one file.
class Lengths final : public Dataset {
 public:
  explicit Lengths(std::vector<std::uint64_t> lengths) : lengths_(std::move(lengths)) {
    for (const std::uint64_t length : lengths_) starts_.push_back(starts_.back() + length);
  }
  std::uint64_t size() const noexcept override { return lengths_.size(); }
  std::uint64_t sample_bytes() const noexcept override {
    return *std::ranges::max_element(lengths_) * 4;
  }
  std::uint64_t parts() const noexcept override { return 1; }
  std::uint64_t reads_per_part() const noexcept override { return 1; }
  std::uint64_t data_bytes() const noexcept override { return starts_.back() * 4; }
  std::string path(std::uint32_t /*shard*/) const override { return "data"; }
  void locate(std::size_t /*field*/, std::uint64_t /*part*/, std::span<const std::uint64_t> samples,
              std::span<std::byte* const> targets, std::vector<Read>& out) const override {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto size = static_cast<std::uint32_t>(lengths_[samples[i]] * 4);
      if (size == 0) continue;
      out.push_back({.from = {.offset_bytes = starts_[samples[i]] * 4, .size_bytes = size},
                     .into = targets[i]});
    }
  }
  SampleField field(std::size_t /*number*/) const noexcept override {
    return {.unit_bytes = 4, .kind = 'u', .item_bytes = 4, .table = 0};
  }
  std::uint32_t tables() const noexcept override { return 1; }
  void lengths(std::uint32_t /*table*/, std::span<const std::uint64_t> samples,
               std::span<std::uint64_t> out) const override {
    for (std::size_t i = 0; i < samples.size(); ++i) out[i] = lengths_[samples[i]];
  }
  [[nodiscard]] std::string sample(const std::string& held, std::uint64_t number) const {
    return held.substr(starts_[number] * 4, lengths_[number] * 4);
  }

 private:
  std::vector<std::uint64_t> lengths_, starts_{0};
};

// Lengths from 0 to 99, and one of 50,000 in the middle if `outlier`.
struct RaggedRig {
  explicit RaggedRig(bool shuffle, bool outlier = false) {
    std::vector<std::uint64_t> lengths;
    for (std::uint64_t i = 0; i < kSamples; ++i) lengths.push_back(i * 7919 % 100);
    if (outlier) lengths[kSamples / 2] = 50'000;
    data = std::make_unique<Lengths>(lengths);
    held = pattern(data->data_bytes());
    fake = std::make_unique<FakeEngine>(std::vector<std::string>{held});
    order = shuffle ? make_shuffle(kSamples, 3) : make_sequential(kSamples);
  }
  [[nodiscard]] std::unique_ptr<Lookahead> load(std::uint64_t batch_size) {
    schedule = {.size = kSamples, .batch_size = batch_size};
    return std::make_unique<Lookahead>(LookaheadInputs{*data, *order, *fake, budget}, schedule, 0);
  }
  void expect_batch(const Batch& batch, std::uint64_t step) const {
    std::vector<std::uint64_t> samples(schedule.count(step));
    order->fill(0, step * schedule.batch_size, samples);
    ASSERT_EQ(heard(batch), samples);
    ASSERT_EQ(batch.offsets().size(), samples.size() + 1);
    const std::span<const std::byte> bytes = batch.column(0);
    ASSERT_EQ(bytes.size(), batch.offsets().back() * 4);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const std::uint64_t first = batch.offsets()[i] * 4, last = batch.offsets()[i + 1] * 4;
      const std::string wanted = data->sample(held, samples[i]);
      ASSERT_EQ(last - first, wanted.size());
      ASSERT_EQ(std::memcmp(bytes.data() + first, wanted.data(), wanted.size()), 0) << step;
    }
  }
  void drain(Lookahead& loader) const {
    for (std::uint64_t step = 0; step < schedule.turns(); ++step) {
      const Batch batch = loader.next(minutes(1)).value();
      ASSERT_TRUE(batch);
      expect_batch(batch, step);
    }
    EXPECT_FALSE(loader.next(minutes(1)).value());
  }

  static constexpr std::uint64_t kSamples = 3001;
  std::unique_ptr<Lengths> data;
  std::string held;
  std::unique_ptr<FakeEngine> fake;
  std::unique_ptr<Order> order;
  Budget budget{4 * kMiB};
  Schedule schedule;
};

TEST(Ragged, DeliversEverySampleWithItsOffsets) {
  for (const Prospect& prospect : {kInMemory, kHeld, kOnDisk}) {
    for (const bool shuffle : {true, false}) {
      for (const std::uint64_t batch_size : {1, 7, 256, 3001}) {
        RaggedRig rig(shuffle);
        rig.fake->set_prospect(prospect);
        rig.drain(*rig.load(batch_size));
      }
    }
  }
}

TEST(Ragged, GivesASampleOfUnusualLengthABufferOfItsOwn) {
  RaggedRig rig(/*shuffle=*/true, /*outlier=*/true);
  rig.drain(*rig.load(16));
}

TEST(Ragged, SaysWhichBatchIsTooLong) {
  // The longest batch in order: all others are much shorter than the mean.
  std::vector<std::uint64_t> lengths(1000, 1);
  std::fill_n(lengths.begin() + 512, 64, 4000);
  RaggedRig rig(/*shuffle=*/false);
  rig.data = std::make_unique<Lengths>(lengths);
  rig.held = pattern(rig.data->data_bytes());
  rig.fake = std::make_unique<FakeEngine>(std::vector<std::string>{rig.held});
  rig.order = make_sequential(lengths.size());
  Budget budget(300 * 1024);
  const Schedule schedule{.size = lengths.size(), .batch_size = 64};
  Lookahead loader({*rig.data, *rig.order, *rig.fake, budget}, schedule, 0);
  std::uint64_t steps = 0;
  try {
    while (loader.next(minutes(1)).value()) ++steps;
    FAIL() << "delivered";
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("the batch of epoch 0, step 8 has 1000 KiB"), std::string::npos) << text;
  }
  EXPECT_EQ(steps, 8U) << "those before it are delivered";
}

TEST(Ragged, RefusesASampleThatIsLongerThanTheBudget) {
  RaggedRig rig(/*shuffle=*/true, /*outlier=*/true);
  Budget budget(100'000);
  const Schedule schedule{.size = RaggedRig::kSamples, .batch_size = 4};
  EXPECT_THROW(Lookahead({*rig.data, *rig.order, *rig.fake, budget}, schedule, 0),
               std::invalid_argument);
}

}  // namespace
}  // namespace lowtide::lookahead_ragged_test

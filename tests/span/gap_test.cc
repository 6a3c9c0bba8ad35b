#include "span/gap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace lowtide::gap_test {
namespace {

// A disk that costs so much a request and a byte, with some noise.
struct FakeDisk {
  double request_ns, byte_ns, noise;
  std::mt19937 random{7};

  std::uint64_t busy_ns(std::uint64_t requests, std::uint64_t bytes) {
    const double exact =
        request_ns * static_cast<double>(requests) + byte_ns * static_cast<double>(bytes);
    const double share = noise * (static_cast<double>(random() % 2001) / 1000 - 1);
    return static_cast<std::uint64_t>(exact * (1 + share));
  }
};

// What sets planned with the model's gaps would be: a wider gap gives fewer requests and more
// bytes.
void run(GapModel& model, FakeDisk disk, int sets) {
  constexpr double kReads = 4096, kRowBytes = 648, kSpacingBytes = 20'000;
  for (int i = 0; i < sets; ++i) {
    const double gap = model.next();
    const double merged = 1 - std::exp(-gap / kSpacingBytes);
    const auto requests = static_cast<std::uint64_t>(kReads * (1 - merged)) + 256;
    const auto bytes = static_cast<std::uint64_t>(kReads * (kRowBytes + merged * gap / 2));
    model.observe(requests, bytes, disk.busy_ns(requests, bytes));
  }
}

TEST(GapModel, StartsWithSixteenKiB) {
  GapModel model;
  EXPECT_EQ(model.best(), 16U * 1024);
}

TEST(GapModel, FindsTheGapAtWhichBothWaysCostTheSame) {
  for (const double gap_bytes : {6'000.0, 16'000.0, 40'000.0, 90'000.0}) {
    GapModel model;
    run(model, {.request_ns = 20'000, .byte_ns = 20'000 / gap_bytes, .noise = 0}, 200);
    EXPECT_NEAR(model.best(), gap_bytes, 0.05 * gap_bytes);
  }
}

TEST(GapModel, StandsSomeNoise) {
  GapModel model;
  run(model, {.request_ns = 20'000, .byte_ns = 0.5, .noise = 0.02}, 500);
  EXPECT_NEAR(model.best(), 40'000, 20'000);
}

TEST(GapModel, FollowsADiskThatChanges) {
  GapModel model;
  run(model, {.request_ns = 20'000, .byte_ns = 0.25, .noise = 0}, 200);
  EXPECT_GT(model.best(), 60'000U);
  run(model, {.request_ns = 20'000, .byte_ns = 2, .noise = 0}, 400);
  EXPECT_LT(model.best(), 20'000U);
}

TEST(GapModel, StaysWithinItsBounds) {
  GapModel cheap_bytes, cheap_requests;
  run(cheap_bytes, {.request_ns = 1'000'000, .byte_ns = 0.01, .noise = 0}, 200);
  EXPECT_LE(cheap_bytes.best(), GapModel::kMostBytes);
  EXPECT_GT(cheap_bytes.best(), GapModel::kMostBytes * 9 / 10);
  run(cheap_requests, {.request_ns = 10, .byte_ns = 1, .noise = 0}, 200);
  EXPECT_GE(cheap_requests.best(), GapModel::kLeastBytes);
  EXPECT_LT(cheap_requests.best(), GapModel::kLeastBytes * 11 / 10);
}

TEST(GapModel, IgnoresWhatTeachesNothing) {
  GapModel model;
  for (int i = 0; i < 100; ++i) {
    model.observe(0, 0, 0);
    model.observe(10, 1'000'000, 1'000'000);  // too few
    model.observe(4096, 4'000'000, 0);        // no time passed
  }
  EXPECT_EQ(model.best(), GapModel::kStartBytes);
  for (int i = 0; i < 100; ++i) model.observe(4096, 4'000'000, 90'000'000);  // all alike
  EXPECT_EQ(model.best(), GapModel::kStartBytes);
}

TEST(GapModel, StandsAbsurdNumbers) {
  GapModel model;
  constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000; ++i) {
    model.observe(i % 3 == 0 ? kHuge : random(), i % 5 == 0 ? 0 : random(),
                  i % 7 == 0 ? kHuge : random() % 1000);
    EXPECT_GE(model.best(), GapModel::kLeastBytes);
    EXPECT_LE(model.best(), GapModel::kMostBytes);
    EXPECT_GT(model.next(), 0U);
  }
}

TEST(LaneGap, NeverPlansWithMoreThanItsBound) {
  LaneGap gap(true, 5000);
  for (int i = 0; i < 100; ++i) {
    EXPECT_LE(gap.next(), 5000U);
    EXPECT_LE(gap.best(), 5000U);
    gap.ended({.requests = 4096 + static_cast<std::uint64_t>(i % 7) * 300,
               .bytes = 100'000'000 - static_cast<std::uint64_t>(i % 5) * 9'000'000,
               .started_ns = 1},
              true);
  }
  LaneGap none(true, 0), apart(false, UINT32_MAX);
  EXPECT_EQ(none.next() + none.best() + apart.next() + apart.best(), 0U);
}

TEST(WholeModel, FindsTheDistanceAtWhichBothCostTheSame) {
  WholeModel model;
  for (int i = 0; i < 500; ++i) {
    model.read_singly(64, 64 * 1000);
    model.read_whole(1 << 20, (1 << 20) / 5);  // 0.2 ns per byte
  }
  EXPECT_NEAR(model.distance_bytes(), 5000, 50);
  EXPECT_TRUE(model.worth(2000));
  EXPECT_FALSE(model.worth(20'000));
}

TEST(WholeModel, KeepsItsDistanceOnASlowMachineUntilBothCostsAreKnown) {
  WholeModel model;
  const std::uint32_t before = model.distance_bytes();
  for (int i = 0; i < 500; ++i) model.read_singly(64, 64 * 3000);
  EXPECT_NEAR(model.distance_bytes(), before, 1);
}

TEST(WholeModel, ForgetsAThreadThatLostItsProcessor) {
  WholeModel model;
  for (int i = 0; i < 500; ++i) {
    model.read_singly(64, i % 100 == 99 ? 1'000'000'000 : 64 * 1000);
    model.read_whole(1 << 20, (1 << 20) / 5);
  }
  EXPECT_NEAR(model.distance_bytes(), 5000, 250);
}

TEST(WholeModel, TriesTheOtherWayNowAndThenWhereBothCostAboutTheSame) {
  WholeModel model;
  const std::uint64_t close = model.distance_bytes() + 100, far = model.distance_bytes() * 3;
  int tried = 0;
  for (int i = 0; i < 320; ++i) {
    tried += model.worth(close) ? 1 : 0;
    EXPECT_FALSE(model.worth(far));
  }
  EXPECT_EQ(tried, 10);
}

}  // namespace
}  // namespace lowtide::gap_test

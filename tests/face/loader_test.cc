#include "lowtide/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "lowtide/error.h"
#include "support/loader_rig.h"
#include "support/token_files.h"

namespace lowtide::loader_test {
namespace {

TEST(Loader, GivesEveryWindowOnceAnEpochOverAllRanks) {
  const LoaderRig rig;  // 100 windows
  for (const OrderKind order : {OrderKind::shuffle, OrderKind::sequential}) {
    for (std::uint64_t world = 1; world <= 4; ++world) {
      std::map<std::uint64_t, std::multiset<std::uint64_t>> seen;  // by epoch
      for (std::uint64_t rank = 0; rank < world; ++rank) {
        LoaderOptions options = kSmall;
        options.order = order;
        options.rank = rank;
        options.world_size = world;
        options.epochs = 3;
        Loader loader = rig.load(options);
        const std::uint64_t steps = 100 / (3 * world);
        EXPECT_EQ(loader.steps(), steps);
        for (std::uint64_t turn = 0; turn < 3 * steps; ++turn) {
          EXPECT_EQ(loader.steps_left(), steps - turn % steps);
          const auto batch = loader.next();
          ASSERT_TRUE(batch);
          EXPECT_EQ(batch.step(), turn % steps);
          EXPECT_EQ(batch.epoch(), turn / steps);
          EXPECT_EQ(batch.rows(), 3U);
          rig.expect_windows(batch);
          seen[batch.epoch()].insert(batch.index().begin(), batch.index().end());
        }
        EXPECT_FALSE(loader.next());
        EXPECT_FALSE(loader.next()) << "and stays so";
        EXPECT_EQ(loader.steps_left(), 0U);
      }
      for (const auto& [epoch, samples] : seen) {
        EXPECT_EQ(samples.size(), 100 / (3 * world) * 3 * world);
        EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), samples.size()) << epoch;
      }
    }
  }
}

TEST(Loader, GivesTheLastBatchShortWhereNothingIsDropped) {
  const LoaderRig rig;
  LoaderOptions options = kSmall;
  options.batch_size = 30;
  options.drop_last = false;
  options.epochs = 2;
  Loader loader = rig.load(options);
  EXPECT_EQ(loader.steps(), 4U);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::set<std::uint64_t> seen;
    for (const std::uint64_t rows : {30, 30, 30, 10}) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch);
      EXPECT_EQ(batch.rows(), rows);
      rig.expect_windows(batch);
      seen.insert(batch.index().begin(), batch.index().end());
    }
    EXPECT_EQ(seen.size(), 100U);
  }
  EXPECT_FALSE(loader.next());
  loader.seek(4, 0);
  EXPECT_EQ(loader.epoch(), 1U) << "the end of an epoch is the start of the next";
  options.batch_size = 1000;
  EXPECT_EQ(rig.load(options).next().rows(), 100U);
}

TEST(Loader, KeepsEveryWindowOnceWhileRanksChangeInTheEpoch) {
  const LoaderRig rig;
  std::multiset<std::uint64_t> seen;
  State state = rig.load(kSmall).state();
  struct Leg {
    std::uint64_t world, batch, steps;
  };
  std::uint64_t step = 0;
  for (const Leg& leg : {Leg{4, 2, 4}, Leg{2, 5, 3}, Leg{3, 1, 11}}) {
    State next;
    for (std::uint64_t rank = 0; rank < leg.world; ++rank) {
      LoaderOptions options = kSmall;
      options.batch_size = leg.batch;
      options.rank = rank;
      options.world_size = leg.world;
      Loader loader = rig.load(options);
      loader.restore(state);
      EXPECT_EQ(loader.steps_left(), (100 - state.position) / (leg.world * leg.batch));
      for (std::uint64_t i = 0; i < leg.steps; ++i) {
        const auto batch = loader.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(batch.epoch(), 0U);
        EXPECT_EQ(batch.step(), step + i);
        rig.expect_windows(batch);
        seen.insert(batch.index().begin(), batch.index().end());
      }
      next = loader.state();
      EXPECT_EQ(next.position, state.position + leg.steps * leg.world * leg.batch);
    }
    state = next;
    step += leg.steps;
  }
  EXPECT_EQ(seen.size(), 95U);
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 95U);
}

TEST(Loader, LeavesNothingOutOfAMixtureOfOne) {
  const LoaderRig rig;
  LoaderOptions options = kSmall;
  options.batch_size = 7;  // 100 windows: 14 steps and 2 windows
  const std::vector<std::pair<Tokens, double>> sources{{rig.tokens, 1.0}};
  Loader loader(sources, options);
  std::vector<std::uint64_t> seen;
  while (seen.size() < 700) {
    const auto batch = loader.next();
    seen.insert(seen.end(), batch.index().begin(), batch.index().end());
    rig.expect_windows(batch);
  }
  for (std::size_t epoch = 0; epoch < 7; ++epoch) {
    const auto first = seen.begin() + static_cast<std::ptrdiff_t>(epoch * 100);
    EXPECT_EQ(std::set<std::uint64_t>(first, first + 100).size(), 100U) << epoch;
  }
}

TEST(Loader, DrawsEachSourceOfAMixtureByItsWeight) {
  const LoaderRig rig;  // 100 and 39 windows
  LoaderOptions options = kSmall;
  options.batch_size = 4;
  Loader loader = rig.mix(options);
  EXPECT_EQ(loader.steps(), 139U / 4);
  std::vector<std::uint64_t> ours, others;
  for (std::uint64_t n = 1; n <= 400;) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    ASSERT_EQ(batch.sources().size(), batch.rows());
    for (std::uint64_t row = 0; row < batch.rows(); ++row) {
      ASSERT_LT(batch.sources()[row], 2U);
      const bool first = batch.sources()[row] == 0;
      ASSERT_LT(batch.index()[row], first ? 100U : 39U) << "in the numbering of its source";
      (first ? ours : others).push_back(batch.index()[row]);
      EXPECT_LE(std::abs(static_cast<double>(ours.size()) - 0.7 * static_cast<double>(n)), 1.0);
      ++n;
    }
    EXPECT_EQ(batch.epoch(), (n - 2) / 4 / 34);
  }
  for (const auto& [samples, size] : {std::pair{ours, 100UL}, {others, 39UL}}) {
    for (std::size_t i = 0; i + size <= samples.size(); i += size) {
      const auto begin = samples.begin() + static_cast<long>(i);
      EXPECT_EQ(std::set(begin, begin + static_cast<long>(size)).size(), size) << "own epochs";
    }
  }
}

TEST(Loader, CoversOneEpochPerRangeForLoop) {
  const LoaderRig rig;
  Loader loader = rig.load({.batch_size = 10, .block_size = 10, .epochs = 2});
  (void)loader.next();
  for (const std::uint64_t steps : {9U, 10U, 0U}) {
    std::uint64_t seen = 0;
    const std::uint64_t epoch = loader.epoch();
    for (const Batch& batch : loader) {
      EXPECT_EQ(batch.epoch(), epoch);
      ++seen;
    }
    EXPECT_EQ(seen, steps);
  }
}

TEST(Loader, DrawsRandomWindowsThatStartAnywhere) {
  const LoaderRig rig;
  LoaderOptions options = kSmall;
  options.order = OrderKind::random;
  Loader loader = rig.load(options);
  EXPECT_EQ(loader.steps(), 33U);
  std::set<std::uint64_t> starts;
  for (int i = 0; i < 60; ++i) {
    const auto batch = loader.next();
    for (std::uint64_t row = 0; row < 3; ++row) {
      const std::uint64_t start = batch.index()[row];
      ASSERT_LT(start, 1003U - 10);
      starts.insert(start % 10);
      rig.expect_window(batch, row, start);
    }
  }
  EXPECT_EQ(starts.size(), 10U);
  options.batch_size = 500;
  EXPECT_EQ(rig.load(options).steps(), 1U) << "at least one step, however few windows";
}

TEST(Loader, DeliversDocumentsApart) {
  const TempFolder folder;
  folder.write("t.bin", little_endian(std::vector<std::uint16_t>{1, 2, 9, 3, 9, 9, 4, 5, 6, 7, 8}));
  const Tokens tokens = Tokens::open(
      folder / "t.bin", {.dtype = "uint16", .eot = 9, .read = {.memory_bytes = 4 << 20}});
  Loader loader(tokens, {.batch_size = 2,
                         .block_size = 5,
                         .order = OrderKind::sequential,
                         .separate_documents = true});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  const auto positions = batch.as<std::int32_t>(kPositions);
  EXPECT_EQ(std::vector<std::int32_t>(positions.begin(), positions.end()),
            (std::vector<std::int32_t>{0, 1, 2, 0, 1, 0, 0, 1, 2, 3}));
  const auto cu = batch.as<std::int32_t>(kCuSeqlens);
  EXPECT_EQ(std::vector<std::int32_t>(cu.begin(), cu.end()),
            (std::vector<std::int32_t>{0, 3, 5, 6, 10}));
  Loader across(tokens, {.batch_size = 2, .block_size = 5});
  const auto plain = across.next();
  EXPECT_EQ(plain.columns(), 2U);
}

}  // namespace
}  // namespace lowtide::loader_test

// Loaders at the ends of what they can do: pieces in a window, the first and last start, positions.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine.h"
#include "order/mixture.h"
#include "support/loader_rig.h"
#include "support/thrown.h"

namespace lowtide::loader_limits_test {
namespace {

// A pair whose sequences of one token lie apart: each is a piece of its own.
Tokens open_pieces(const TempFolder& folder, std::size_t pieces) {
  MegatronIndex index;
  std::vector<std::uint16_t> tokens;
  for (std::size_t i = 0; i < pieces; ++i) {
    index.lengths.push_back(1);
    index.pointers.push_back(static_cast<std::int64_t>(4 * i));
    index.boundaries.push_back(static_cast<std::int64_t>(i));
    tokens.push_back(static_cast<std::uint16_t>(i));
    tokens.push_back(65535);  // of no sequence
  }
  index.boundaries.push_back(static_cast<std::int64_t>(pieces));
  folder.write("pieces.idx", index.bytes());
  return Tokens::open(folder.write("pieces.bin", little_endian(tokens)),
                      {.read = {.memory_bytes = 16 << 20, .engine = EngineKind::pread}});
}

TEST(LoaderLimits, ReadAWindowOfAsManyPiecesAsAreReadTogether) {
  const TempFolder folder;
  const Tokens tokens = open_pieces(folder, Engine::kMaxReads + 1);
  ASSERT_EQ(tokens.size(), Engine::kMaxReads + 1);
  LoaderOptions options{.batch_size = 1, .block_size = Engine::kMaxReads - 1};
  Loader loader(tokens, options);
  for (int step = 0; step < 3; ++step) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    const auto y = batch.as<std::int64_t>(kY);
    for (std::uint64_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], static_cast<std::int64_t>(i + 1));
    }
  }
  options.block_size = Engine::kMaxReads;
  EXPECT_EQ(thrown([&] { const Loader one_more(tokens, options); }),
            "block_size: a window of 16384 + 1 tokens can span 16385 separate places in files, but "
            "at most 16384 can be read together; use a smaller block_size");
}

TEST(LoaderLimits, DrawRandomStartsUpToBothEnds) {
  const TokenRig rig(40);
  for (const std::uint64_t block : {1, 30, 38, 39}) {
    Loader loader(rig.tokens, {.batch_size = 100, .block_size = block, .order = OrderKind::random});
    std::uint64_t least = 1000, most = 0;
    for (int step = 0; step < 20; ++step) {
      const auto batch = loader.next();
      ASSERT_TRUE(batch);
      for (std::uint64_t row = 0; row < batch.rows(); ++row) {
        const std::uint64_t start = batch.index()[row];
        ASSERT_LE(start, 39 - block);
        rig.expect_window(batch, row, start);
        least = std::min(least, start);
        most = std::max(most, start);
      }
    }
    EXPECT_EQ(least, 0U) << block;
    EXPECT_EQ(most, 39 - block) << block;
  }
}

// A random epoch is as long as one step needs it at least.
TEST(LoaderLimits, EndARandomEpochThatWasLongerUnderOtherSizes) {
  const TokenRig rig(40);
  LoaderOptions options{.batch_size = 100, .block_size = 10, .order = OrderKind::random};
  Loader wide(rig.tokens, options);
  EXPECT_EQ(wide.steps(), 1U);
  wide.skip(0, 1, 4);
  wide.seek(1);
  State state = wide.state();
  EXPECT_EQ(state.position, 0U) << "of the next epoch";
  EXPECT_EQ(state.epoch, 1U);
  state.epoch = 0;
  state.position = 100;
  state.step = 1;
  options.batch_size = 2;
  Loader narrow(rig.tokens, options);
  narrow.restore(state);
  const auto batch = narrow.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch.epoch(), 1U);
  EXPECT_EQ(batch.step(), 0U);
  narrow.seek(0, 4);
  EXPECT_EQ(narrow.epoch(), 5U) << "the longer skip is the whole of a shorter epoch";
}

TEST(LoaderLimits, GoOnFromTheLastPlacesOfAMixture) {
  const LoaderRig rig;
  constexpr std::uint64_t kMost = Mixture::kMostPositions / 2;
  Loader loader = rig.mix(kSmall);
  State state = loader.state();
  state.base = kMost;
  state.epoch = kMost / 139;
  loader.restore(state);
  for (int step = 0; step < 100; ++step) {
    const auto batch = loader.next();
    ASSERT_TRUE(batch);
    for (std::uint64_t row = 0; row < batch.rows(); ++row) {
      ASSERT_LT(batch.index()[row], batch.sources()[row] == 0 ? 100U : 39U);
    }
  }
  EXPECT_GT(loader.state().base, kMost);
  state.base = kMost + 1;
  EXPECT_EQ(thrown([&] { loader.restore(state); }),
            "state: " + std::to_string(kMost + 1) + " windows before this epoch exceed the " +
                std::to_string(kMost) + " that a mixture can have");
}

TEST(LoaderLimits, SeekNoEpochThatAMixtureDoesNotHave) {
  const LoaderRig rig;
  Loader loader = rig.mix(kSmall);
  constexpr std::uint64_t kLast = Mixture::kMostPositions / 2 / 139;
  loader.seek(0, kLast);
  EXPECT_EQ(loader.epoch(), kLast);
  EXPECT_TRUE(loader.next());
  for (const std::uint64_t epoch : {kLast + 1, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    EXPECT_EQ(thrown([&] { loader.seek(0, epoch); }),
              "seek: a mixture of this size has no epoch " + std::to_string(epoch) +
                  "; its last epoch is " + std::to_string(kLast));
  }
  loader.seek(0, 0);
  Loader fresh = rig.mix(kSmall);
  EXPECT_EQ(hear(loader), hear(fresh)) << "and back";
}

}  // namespace
}  // namespace lowtide::loader_limits_test

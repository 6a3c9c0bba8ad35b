#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "lowtide/error.h"
#include "lowtide/loader.h"
#include "support/forked.h"
#include "support/loader_rig.h"
#include "support/thrown.h"

namespace lowtide::loader_trouble_test {
namespace {

template <typename Change>
std::string refused(const Tokens& tokens, const Change& change) {
  LoaderOptions options = kSmall;
  change(options);
  return thrown([&] { const Loader loader(tokens, options); });
}

TEST(LoaderTrouble, RefusesBadOptionsAndSaysWhy) {
  const TokenRig rig(1003);
  const auto with = [&](const auto& change) { return refused(rig.tokens, change); };
  EXPECT_EQ(with([](auto& o) { o.batch_size = 0; }), "batch_size must be at least 1, not 0");
  EXPECT_EQ(with([](auto& o) { o.block_size = 0; }), "block_size must be at least 1, not 0");
  EXPECT_EQ(with([](auto& o) { o.block_size = 1003; }),
            "block_size: a window of 1003 + 1 tokens does not fit into a stream of 1003 tokens");
  EXPECT_EQ(with([](auto& o) { o.world_size = 0; }), "world_size must be at least 1, not 0");
  EXPECT_EQ(with([](auto& o) { o.rank = o.world_size = 2; }),
            "rank must be below world_size (2), not 2");
  EXPECT_NE(with([](auto& o) {
              o.drop_last = false;
              o.world_size = 2;
            }).find("drop_last must be true with a world_size of 2"),
            std::string::npos);
  EXPECT_EQ(
      with([](auto& o) { o.batch_size = 101; }),
      "batch_size: one step of 1 rank needs 101 windows of block_size 10, but there are 100; use a "
      "smaller batch_size or block_size");
  EXPECT_EQ(
      with([](auto& o) {
        o.batch_size = 51;
        o.world_size = 2;
      }),
      "batch_size: one step of 2 ranks needs 102 windows of block_size 10, but there are 100; use "
      "a smaller batch_size or block_size");
  EXPECT_EQ(with([](auto& o) { o.dtype = "float32"; }),
            "dtype: tokens cannot be delivered as \"float32\"; use one of uint8, int8, uint16, "
            "int16, uint32, int32, uint64, int64");
  EXPECT_NE(with([](auto& o) { o.separate_documents = true; }).find("; give eot, "),
            std::string::npos);
  EXPECT_NE(with([](auto& o) { o.batch_size = ~std::uint64_t{0}; }), "no error");
  EXPECT_EQ(with([](auto&) {}), "no error");
}

TEST(LoaderTrouble, RefusesSourcesAndWeightsThatAreNone) {
  const TokenRig rig(1003);
  using Sources = std::vector<std::pair<Tokens, double>>;
  const auto with = [&](const Sources& sources) {
    return thrown([&] { const Loader loader(sources, kSmall); });
  };
  EXPECT_EQ(with({}), "the list of sources is empty; give one");
  for (const double bad : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_NE(with({{rig.tokens, 1}, {rig.tokens, bad}}), "no error") << bad;
    EXPECT_NE(with({{rig.tokens, bad}}), "no error") << bad << " alone";
  }
  EXPECT_EQ(with({{rig.tokens, 3}}), "no error");
  EXPECT_EQ(with({{rig.tokens, 1}, {rig.tokens, 1}}), "no error") << "twice the same";
  const Tokens tiny = rig.open("tiny.bin", made_tokens(10));
  EXPECT_EQ(with({{rig.tokens, 1}, {tiny, 1}}),
            "block_size: a window of 10 + 1 tokens does not fit into a stream of 10 tokens");
  Tokens closed = rig.open("closed.bin", made_tokens(100));
  closed.close();
  EXPECT_NE(with({{rig.tokens, 1}, {closed, 1}}).find("closed"), std::string::npos);
}

TEST(LoaderTrouble, RefusesAStateOfSomethingElse) {
  const TokenRig rig(1003);
  Loader loader(rig.tokens, kSmall);
  const State good = loader.state();
  const auto with = [&](const auto& change) {
    State state = good;
    change(state);
    return thrown([&] { loader.restore(state); });
  };
  EXPECT_EQ(with([](auto&) {}), "no error");
  EXPECT_EQ(with([](auto& s) { s.block_size = 11; }),
            "state: block_size differs: the state has 11, this loader has 10");
  EXPECT_EQ(with([](auto& s) { s.order = "random"; }),
            "state: order differs: the state has random, this loader has shuffle");
  EXPECT_EQ(with([](auto& s) { s.seed = 6; }),
            "state: seed differs: the state has 6, this loader has 5");
  EXPECT_EQ(with([](auto& s) { s.format = 2; }),
            "state: format differs: the state has 2, this loader has 1");
  EXPECT_EQ(with([](auto& s) { ++*s.fingerprint; }).find("state: the data differs"), 0U);
  EXPECT_EQ(with([](auto& s) { s.position = 101; }),
            "state: position 101 is beyond the 100 positions of an epoch");
  EXPECT_EQ(with([](auto& s) { s.skipped = {{0, 5, 101}}; }),
            "state: the skipped range 5 to 101 is not within an epoch");
  EXPECT_EQ(with([](auto& s) {
              for (std::uint64_t i = 0; i < 17; ++i) s.skipped.push_back({i, 0, 3});
            }),
            "skip: more than 16 ranges in the current and later epochs; join some, because "
            "adjacent ranges count as one");
  EXPECT_EQ(with([](auto& s) {
              for (std::uint64_t i = 0; i < 17; ++i) s.skipped.push_back({i, 0, 3});
              s.epoch = 1;
            }),
            "no error");
  EXPECT_EQ(loader.state().skipped.size(), 16U);
  EXPECT_EQ(loader.state().skipped.front().epoch, 1U) << "that of an epoch that is over made way";
  auto other = rig.held;
  other.back() = 1;
  EXPECT_EQ(thrown([&] {
              Loader(rig.open("changed.bin", other), kSmall).restore(good);
            }).find("state: the data differs"),
            0U)
      << "the last token";
  EXPECT_EQ(thrown([&] { Loader(rig.open("copy.bin", rig.held), kSmall).restore(good); }),
            "no error")
      << "a copy under another name";
  EXPECT_TRUE(loader.next()) << "a refused state changes nothing";
}

TEST(LoaderTrouble, RefusesSkipsThatAreBehindOrOutside) {
  const TokenRig rig(1003);
  LoaderOptions options = kSmall;
  options.epochs = 2;
  Loader loader(rig.tokens, options);
  for (int i = 0; i < 3; ++i) (void)loader.next();
  EXPECT_EQ(thrown([&] { loader.skip(2, 5); }),
            "skip: step 2 of epoch 0 has passed; the next is step 3 of epoch 0");
  EXPECT_EQ(thrown([&] { loader.skip(5, 5); }),
            "skip: 5 to 5 is not a range within the 33 steps of the epoch");
  EXPECT_EQ(thrown([&] { loader.skip(5, 34); }),
            "skip: 5 to 34 is not a range within the 33 steps of the epoch");
  EXPECT_EQ(thrown([&] { loader.skip(0, 1, 2); }),
            "skip: epoch 2 is beyond the 2 epochs of this loader");
  loader.skip(3, 33);
  EXPECT_EQ(loader.epoch(), 1U);
}

TEST(LoaderTrouble, HasABudgetOfItsOwnOrThatOfItsTokens) {
  const TokenRig rig(1003);
  Loader shared(rig.tokens, kSmall);
  EXPECT_EQ(shared.stats().memory_limit_bytes, std::uint64_t{4} << 20);
  LoaderOptions options = kSmall;
  options.memory_bytes = 2 << 20;
  Loader own(rig.tokens, options);
  EXPECT_EQ(own.stats().memory_limit_bytes, std::uint64_t{2} << 20);
  EXPECT_EQ(hear(own), hear(shared));
  options.memory_bytes = 4096;
  EXPECT_EQ(thrown([&] { const Loader tiny(rig.tokens, options); }).find("memory: 4 KiB is too "),
            0U);
  const TokenRig long_one(1 << 20, 1 << 20);
  LoaderOptions wide{.batch_size = 200, .block_size = 1024};
  EXPECT_EQ(thrown([&] { const Loader big(long_one.tokens, wide); }).find("memory: "), 0U);
  wide.batch_size = 4;
  Loader fits(long_one.tokens, wide);
  for (int i = 0; i < 200; ++i) long_one.expect_windows(fits.next());
}

TEST(LoaderTrouble, NamesATokenThatDoesNotFit) {
  const TempFolder folder;
  std::vector<std::uint32_t> tokens(1000, 7);
  tokens[777] = 70000;
  const std::string path = folder.write("t.bin", little_endian(tokens));
  const Tokens stream = Tokens::open(path, {.dtype = "uint32", .read = {.memory_bytes = 4 << 20}});
  for (const bool separate_budget : {false, true}) {
    Loader loader(stream, {.batch_size = 2,
                           .block_size = 10,
                           .order = OrderKind::sequential,
                           .dtype = "uint16",
                           .memory_bytes = separate_budget ? 2U << 20 : 0U});
    std::string first;
    for (int i = 0; i < 60; ++i) {
      const std::string now = thrown([&] { (void)loader.next(); });
      if (first.empty() && now != "no error") first = now;
      if (!first.empty()) {
        EXPECT_EQ(now, first) << "again and again";
      }
    }
    EXPECT_EQ(first, path +
                         ": token 70000 at position 777 of the stream does not fit dtype uint16; "
                         "use a wider dtype, such as int64 (epoch 0, step 38)");
  }
  EXPECT_THROW((void)stream.windows(std::vector<std::int64_t>{770}, 10, "int16"),
               std::invalid_argument);
}

TEST(LoaderTrouble, SaysThatAShardWasTruncatedInTheEpoch) {
  const TempFolder folder;
  std::vector<std::string> paths;
  for (const char* name : {"a.bin", "b.bin"}) {
    paths.push_back(folder.write(name, little_endian(made_tokens(500'000))));
  }
  const Tokens tokens = Tokens::open(
      paths, {.dtype = "uint16", .read = {.memory_bytes = 1 << 20, .engine = EngineKind::pread}});
  Loader loader(
      tokens, {.batch_size = 4, .block_size = 100, .order = OrderKind::sequential, .prefetch = 2});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(loader.next());
  std::filesystem::resize_file(paths[1], 200'000);
  std::string text;
  for (int i = 0; i < 3000 && text.empty(); ++i) {
    try {
      ASSERT_TRUE(loader.next());
    } catch (const FormatError& error) {
      text = error.what();
    }
  }
  EXPECT_EQ(text.find(paths[1] + ": "), 0U) << text;
  EXPECT_NE(text.find("truncated"), std::string::npos) << text;
  EXPECT_NE(text.find("epoch 0, step "), std::string::npos) << text;
}

TEST(LoaderTrouble, GoesOnInAForkedChild) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not follow threads into a child";
  const TokenRig rig(1003);
  Loader plain(rig.tokens, kSmall), loader(rig.tokens, kSmall);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(hear(loader), hear(plain));
  std::vector<Heard> rest;
  for (int i = 0; i < 40; ++i) rest.push_back(hear(plain));
  const pid_t child = start_child([&] {
    for (const Heard& one : rest) {
      if (hear(loader) != one) return 1;
    }
    loader.restore(loader.state());
    return loader.next() ? 0 : 2;
  });
  for (const Heard& one : rest) EXPECT_EQ(hear(loader), one) << "and so does the parent";
  expect_success(child);
}

TEST(LoaderTrouble, GoesOnWhenItsTokensAreClosedOrGone) {
  std::optional<TokenRig> rig(1003);
  Loader loader(rig->tokens, kSmall);
  Loader plain(rig->tokens, kSmall);
  rig->tokens.close();
  EXPECT_TRUE(rig->tokens.closed());
  EXPECT_THROW((void)rig->tokens.batch(1, 10, 0), std::invalid_argument);
  EXPECT_NE(refused(rig->tokens, [](auto&) {}).find("closed"), std::string::npos);
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  rig->expect_windows(batch);
  const State state = loader.state();
  rig.reset();
  EXPECT_TRUE(loader.next());
  (void)plain.next();
  plain.restore(state);
  EXPECT_TRUE(plain.next());
}

TEST(LoaderTrouble, EndsAWaitingNextWhenCancelledFromAnotherThread) {
  const TokenRig rig(100'003);
  Loader loader(rig.tokens, kSmall);
  std::atomic<int> got{0};
  std::thread consumer([&] {
    while (loader.next()) ++got;
  });
  while (got < 10) std::this_thread::yield();
  loader.cancel();
  consumer.join();
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next_for(std::chrono::milliseconds(1)).value());
}

TEST(LoaderTrouble, ServesManyThreadsWithALoaderEachWhileTokensAreRead) {
  const TokenRig rig(20'003, 8 << 20);
  std::vector<std::thread> threads;
  for (std::uint64_t rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&rig, rank] {
      LoaderOptions options = kSmall;
      options.rank = rank;
      options.world_size = 4;
      options.epochs = 1;
      Loader loader(rig.tokens, options);
      while (const auto batch = loader.next()) {
        rig.expect_windows(batch);
        const Batch drawn = rig.tokens.batch(rank + 1, 10, batch.step());
        rig.expect_window(drawn, rank, drawn.index()[rank]);
      }
      (void)rig.tokens.fingerprint();
      (void)rig.tokens.stats();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace lowtide::loader_trouble_test

#include "lowtide/tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "lowtide/error.h"
#include "support/forked.h"
#include "support/golden.h"
#include "support/thrown.h"
#include "support/token_files.h"
#include "support/token_stream.h"

namespace lowtide::tokens_test {
namespace {

using Starts = std::vector<std::int64_t>;

std::string golden_tokens(const std::string& name) {
  return golden("tokens") / name;
}

std::span<std::byte> bytes_of(std::vector<std::uint16_t>& tokens) {
  return std::as_writable_bytes(std::span(tokens));
}

std::vector<std::uint16_t> read_all(const Tokens& tokens) {
  std::vector<std::uint16_t> all(tokens.size());
  tokens.read(0, all.size(), bytes_of(all));
  return all;
}

TEST(Tokens, GivesTheWindowsThatStartAtYourPlaces) {
  const TokenRig rig(1003);
  std::mt19937 random(4);
  for (const std::uint64_t block : {1, 2, 16, 17, 100, 1002}) {
    Starts starts{0, static_cast<std::int64_t>(1002 - block)};
    for (int i = 0; i < 20; ++i) {
      starts.push_back(static_cast<std::int64_t>(random() % (1003 - block)));
    }
    const Batch batch = rig.tokens.windows(starts, block);
    ASSERT_EQ(batch.rows(), starts.size());
    for (std::size_t row = 0; row < starts.size(); ++row) {
      rig.expect_window(batch, row, static_cast<std::uint64_t>(starts[row]));
    }
  }
  EXPECT_EQ(rig.tokens.windows(Starts{}, 10).rows(), 0U);
}

TEST(Tokens, ReadsLongListsInPieces) {
  const TokenRig rig(5003, 1 << 20);
  std::mt19937 random(4);
  Starts starts(20'000);
  for (std::int64_t& start : starts) start = static_cast<std::int64_t>(random() % 5000);
  int pieces = 0;
  const Batch batch = rig.tokens.windows(starts, 3, "int64", [&] { ++pieces; });
  EXPECT_GE(pieces, 4);
  for (std::size_t row = 0; row < starts.size(); ++row) {
    rig.expect_window(batch, row, static_cast<std::uint64_t>(starts[row]));
  }
  const Batch drawn = rig.tokens.batch(20'000, 3, 1);
  for (std::size_t row = 0; row < 20'000; ++row) {
    rig.expect_window(drawn, row, drawn.index()[row]);
  }
  struct Enough {};
  EXPECT_THROW((void)rig.tokens.windows(starts, 3, "int64", [] { throw Enough(); }), Enough);
}

TEST(Tokens, GivesWindowsInEveryTypeThatHoldsTheTokens) {
  const TokenRig rig(300);
  const auto as = [&](const char* dtype, auto zero) {
    using To = decltype(zero);
    const Batch batch = rig.tokens.windows(Starts{5, 100}, 33, dtype);
    const auto x = batch.as<To>(kX);
    const auto y = batch.as<To>(kY);
    for (std::size_t i = 0; i < 33; ++i) {
      EXPECT_EQ(x[33 + i], static_cast<To>(rig.held[100 + i])) << dtype;
      EXPECT_EQ(y[i], static_cast<To>(rig.held[6 + i])) << dtype;
    }
  };
  as("uint16", std::uint16_t{});
  as("int32", std::int32_t{});
  as("uint32", std::uint32_t{});
  as("int64", std::int64_t{});
  as("uint64", std::uint64_t{});
  EXPECT_NE(thrown([&] {
              (void)rig.tokens.windows(Starts{5}, 33, "uint8");
            }).find(" does not fit dtype uint8; use a wider dtype"),
            std::string::npos);
}

TEST(Tokens, RefusesWindowsThatAreNotAllInside) {
  const TokenRig rig(100);
  EXPECT_EQ(thrown([&] { (void)rig.tokens.windows(Starts{3, 90}, 10); }),
            "starts: entry 1 is 90; a window of 10 + 1 tokens can start at 0 to 89");
  EXPECT_THROW((void)rig.tokens.windows(Starts{-1}, 10), std::out_of_range);
  EXPECT_EQ(thrown([&] { (void)rig.tokens.windows(Starts{0}, 100); }),
            "block_size: a window of 100 + 1 tokens does not fit into a stream of 100 tokens");
  EXPECT_EQ(thrown([&] { (void)rig.tokens.batch(0, 10, 1); }),
            "batch_size must be at least 1, not 0");
  EXPECT_THROW((void)rig.tokens.windows(Starts{0}, 0), std::invalid_argument);
  std::vector<std::uint16_t> out(2);
  EXPECT_THROW(rig.tokens.read(99, 2, bytes_of(out)), std::out_of_range);
  EXPECT_THROW(rig.tokens.read(101, 0, {}), std::out_of_range);
  EXPECT_NO_THROW(rig.tokens.read(100, 0, {}));
  EXPECT_EQ(thrown([&] { rig.tokens.read(0, 3, bytes_of(out)); }),
            "out has 4 bytes, which is not 3 rows of 2 bytes");
  EXPECT_THROW(rig.tokens.take(Starts{0}, bytes_of(out)), std::invalid_argument);
}

TEST(Tokens, TakesAnyTokensInAnyOrderFromManyShards) {
  const TempFolder folder;
  const auto held = made_tokens(1003);
  std::vector<std::string> paths;
  for (std::size_t first = 0; first < held.size(); first += 100) {
    const std::size_t last = std::min(first + 100, held.size());
    paths.push_back(folder.write(
        "shard_" + std::to_string(1000 + first) + ".bin",
        little_endian(std::vector<std::uint16_t>(held.begin() + static_cast<long>(first),
                                                 held.begin() + static_cast<long>(last)))));
  }
  std::mt19937 random(7);
  for (const EngineKind engine : {EngineKind::pread, EngineKind::memory}) {
    const Tokens tokens = Tokens::open(paths, {.dtype = "uint16", .read = {.engine = engine}});
    for (const std::size_t count : {0, 1, 7, 4096, 9000}) {
      std::vector<std::uint32_t> places(count);
      for (std::uint32_t& place : places) place = static_cast<std::uint32_t>(random() % 1003);
      std::vector<std::uint16_t> found(count), expected;
      for (const std::uint32_t place : places) expected.push_back(held[place]);
      tokens.take(std::span<const std::uint32_t>(places), bytes_of(found));
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(Tokens, TakesTokensThatLieTogetherWithFewReads) {
  const TokenRig rig(5000);
  const Tokens tokens = Tokens::open(
      rig.folder / "train.bin", {.read = {.memory_bytes = 4 << 20, .engine = EngineKind::pread}});
  std::vector<std::int64_t> places(4096);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(4095 - i);
  places[17] = 3;
  std::vector<std::uint16_t> found(places.size());
  tokens.take(std::span<const std::int64_t>(places), bytes_of(found));
  for (std::size_t i = 0; i < places.size(); ++i) {
    ASSERT_EQ(found[i], rig.held[static_cast<std::size_t>(places[i])]) << i;
  }
  EXPECT_EQ(tokens.stats().bytes_asked, 2U * 4096);
  EXPECT_LE(tokens.stats().reads, 4U);
  EXPECT_EQ(tokens.stats().reads + tokens.stats().merged, 4096U);
}

TEST(Tokens, RefusesToTakeATokenThatIsNotThere) {
  const TokenRig rig(100);
  std::vector<std::uint16_t> found(2);
  const auto error = [&](std::int64_t place) {
    const std::vector<std::int64_t> places{0, place};
    return thrown([&] { rig.tokens.take(std::span<const std::int64_t>(places), bytes_of(found)); });
  };
  EXPECT_EQ(error(100), "index 100 is out of bounds for axis 0 with size 100");
  EXPECT_EQ(error(-1), "index -1 is out of bounds for axis 0 with size 100");
}

TEST(Tokens, DrawsTheSameBatchForTheSameSeed) {
  const TokenRig rig(1003);
  const auto starts = [&](std::uint64_t seed) {
    const Batch batch = rig.tokens.batch(50, 20, seed);
    for (std::uint64_t row = 0; row < 50; ++row) rig.expect_window(batch, row, batch.index()[row]);
    return std::vector<std::uint64_t>(batch.index().begin(), batch.index().end());
  };
  EXPECT_EQ(starts(1), starts(1));
  EXPECT_NE(starts(1), starts(2));
  EXPECT_NO_THROW((void)starts(~std::uint64_t{0}));
}

TEST(Tokens, KeepsABatchAliveWhateverElseIsGone) {
  std::optional<TokenRig> rig(1003);
  const Batch first = rig->tokens.windows(Starts{7}, 10);
  const Batch second = rig->tokens.windows(Starts{8}, 10);
  rig->expect_window(first, 0, 7);
  const auto held = rig->held;
  rig.reset();
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(first.as<std::int64_t>(kX)[i], held[7 + i]);
    EXPECT_EQ(second.as<std::int64_t>(kY)[i], held[9 + i]);
  }
}

TEST(Tokens, ReadsManyTinyShardsAsOneStream) {
  const TempFolder folder;
  const auto held = made_tokens(333);
  std::vector<std::string> paths;
  for (std::size_t first = 0, i = 0; first < held.size(); ++i) {
    const std::size_t count = std::min(1 + i % 4, held.size() - first);
    const auto begin = held.begin() + static_cast<long>(first);
    const std::string name = "shard_" + std::to_string(1000 + i) + ".bin";
    paths.push_back(folder.write(
        name, little_endian(std::vector<std::uint16_t>(begin, begin + static_cast<long>(count)))));
    if (i % 10 == 0) folder.write("shard_" + std::to_string(1000 + i) + "_.bin", "");
    first += count;
  }
  const TokensOptions options{.dtype = "uint16", .read = {.memory_bytes = 4 << 20}};
  for (const Tokens& tokens :
       {Tokens::open(paths, options), Tokens::open(folder / "shard_*.bin", options),
        Tokens::open(folder.path(), options)}) {
    EXPECT_EQ(tokens.paths(), paths) << "empty shards are left out";
    EXPECT_EQ(read_all(tokens), held);
    const Batch batch = tokens.windows(Starts{0, 100, 232}, 100);
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(batch.as<std::int64_t>(kY)[200 + i], held[233 + i]);
    }
    Loader loader(tokens, {.batch_size = 2, .block_size = 50, .order = OrderKind::sequential});
    const auto loaded = loader.next();
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(loaded.as<std::int64_t>(kX)[i], held[i]);
    }
  }
}

TEST(Tokens, OpensAPairByAnyOfItsNames) {
  const auto expected = read_all(Tokens::open(golden_tokens("megatron_uint16.bin")));
  EXPECT_FALSE(expected.empty());
  for (const char* name : {"megatron_uint16", "megatron_uint16.idx", "megatron_uint16.*"}) {
    const Tokens tokens = Tokens::open(golden_tokens(name));
    EXPECT_EQ(tokens.format(), "megatron");
    EXPECT_EQ(tokens.paths(), std::vector<std::string>{golden_tokens("megatron_uint16.bin")});
    EXPECT_EQ(read_all(tokens), expected);
    ASSERT_TRUE(tokens.documents());
    std::vector<std::int64_t> offsets(*tokens.documents() + 1);
    tokens.document_offsets(0, offsets);
    EXPECT_EQ(offsets.front(), 0);
    EXPECT_EQ(offsets.back(), static_cast<std::int64_t>(tokens.size()));
    EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
    EXPECT_THROW(tokens.document_offsets(1, offsets), std::out_of_range);
  }
  const std::vector<std::string> twice{golden_tokens("megatron_uint16.idx"),
                                       golden_tokens("megatron_uint16.bin")};
  EXPECT_EQ(Tokens::open(twice).size(), expected.size()) << "a pair named twice is one";
}

// More documents of two tokens each than fit into an eighth of the budget.
Tokens open_many_documents(const TempFolder& folder, std::size_t documents) {
  MegatronIndex index;
  index.lengths.assign(documents, 2);
  for (std::size_t i = 0; i <= documents; ++i) {
    const auto number = static_cast<std::int64_t>(i);
    if (i < documents) index.pointers.push_back(number * 4);
    index.boundaries.push_back(number);
  }
  folder.write("many.idx", index.bytes());
  return Tokens::open(folder.write("many.bin", std::string(documents * 4, '\1')),
                      {.read = {.memory_bytes = 1 << 20}});
}

bool has_documents(const Tokens& tokens, std::uint64_t first, std::uint64_t count) {
  std::vector<std::int64_t> offsets(count);
  tokens.document_offsets(first, offsets);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (offsets[i] != static_cast<std::int64_t>((first + i) * 2)) return false;
  }
  return true;
}

TEST(Tokens, FindsDocumentsInTheIndexIfTheyDoNotFitIntoTheBudget) {
  const TempFolder folder;
  const Tokens tokens = open_many_documents(folder, 50'000);
  EXPECT_TRUE(has_documents(tokens, 0, 50'001));
  EXPECT_TRUE(has_documents(tokens, 49'999, 2));
  folder.write("many.idx", "gone");
  EXPECT_THROW((void)has_documents(tokens, 40'000, 10'000), std::exception);
}

TEST(Tokens, FindsDocumentsInAChildOfAForkAmidReads) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not follow threads into a child";
  const TempFolder folder;
  const Tokens tokens = open_many_documents(folder, 50'000);
  EXPECT_TRUE(has_documents(tokens, 0, 10));
  std::atomic<bool> done = false;
  std::atomic<int> right = 0, wrong = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) ++(has_documents(tokens, 30'000, 3) ? right : wrong);
    });
  }
  while (right < 10) std::this_thread::yield();
  for (int i = 0; i < 10; ++i) {
    expect_success(start_child([&] { return has_documents(tokens, 0, 50'001) ? 0 : 1; }));
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Tokens, SaysWhatAFolderHasThatItCannotRead) {
  const TempFolder folder;
  const auto error = [&] { return thrown([&] { (void)Tokens::open(folder.path()); }); };
  EXPECT_EQ(error(),
            folder.path() + ": this folder contains no token files (.bin, .npy, .mds or .ds)");
  folder.write("a.bin", little_endian(made_tokens(10)));
  EXPECT_EQ(error(), "no error");
  folder.write("a.npy", little_endian(made_tokens(10)));
  EXPECT_EQ(error().find(folder.path() + ": this folder contains both .bin and .npy files"), 0U);
  folder.write("index.json", "{\"shards\": [{\"raw\": \"../../outside\"}]}");
  EXPECT_EQ(error().find(folder.path() + "/index.json: "), 0U);
  EXPECT_THROW((void)Tokens::open(folder / "none.bin"), IoError);
  EXPECT_THROW((void)Tokens::open(folder.write("empty.bin", "")), FormatError);
  const std::vector<std::string> cut{folder.write("whole.bin", "ab"), folder.write("cut.bin", "")};
  EXPECT_EQ(Tokens::open(cut).size(), 1U) << "an empty file among others";
  (void)folder.write("cut.idx", "MMIDIDX");
  EXPECT_THROW((void)Tokens::open(cut), FormatError) << "whose index is still there";
  EXPECT_THROW((void)Tokens::open(std::vector<std::string>{}), std::invalid_argument);
  const std::vector<std::string> empties{folder / "empty.bin", folder / "empty.bin"};
  EXPECT_THROW((void)Tokens::open(empties), FormatError);
}

TEST(Tokens, TellsOtherDataByItsFingerprint) {
  const TokenRig rig(5000);
  const std::uint64_t known = rig.tokens.fingerprint();
  EXPECT_EQ(rig.open("copy.bin", rig.held).fingerprint(), known);
  const auto changed = [&](std::size_t at) {
    auto other = rig.held;
    ++other[at];
    return rig.open("other.bin", other).fingerprint();
  };
  EXPECT_NE(changed(0), known);
  EXPECT_NE(changed(4999), known);
  EXPECT_NE(rig.open("short.bin", made_tokens(4999)).fingerprint(), known);
  for (const std::size_t size : {1, 31, 32, 33, 60, 90, 95}) {
    const std::uint64_t tiny = rig.open("tiny.bin", made_tokens(size)).fingerprint();
    for (const std::size_t at : {std::size_t{0}, size / 2, size - 1}) {
      auto other = made_tokens(size);
      ++other[at];
      EXPECT_NE(rig.open("tinier.bin", other).fingerprint(), tiny) << at << " of " << size;
    }
  }
}

TEST(Tokens, CountsWhatItReadsAndEndsWithClose) {
  TokenRig rig(1003);
  (void)rig.tokens.windows(Starts{0, 1}, 10);
  EXPECT_EQ(rig.tokens.stats().bytes_asked, 2U * 11 * 2);
  EXPECT_EQ(rig.tokens.memory_bytes(), std::uint64_t{4} << 20);
  EXPECT_FALSE(rig.tokens.documents());
  std::int64_t offset = 0;
  EXPECT_THROW(rig.tokens.document_offsets(0, {&offset, 1}), std::invalid_argument);
  const Tokens copy = rig.tokens;
  rig.tokens.close();
  EXPECT_TRUE(copy.closed());
  EXPECT_THROW((void)copy.windows(Starts{0}, 10), std::invalid_argument);
  EXPECT_NO_THROW(rig.tokens.close());
}

}  // namespace
}  // namespace lowtide::tokens_test

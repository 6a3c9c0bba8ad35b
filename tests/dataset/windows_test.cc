#include "dataset/windows.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/token_files.h"

namespace lowtide::windows_test {
namespace {

// A stream in memory: shards of a few tokens each.
template <typename Token>
struct StreamRig {
  StreamRig(const std::vector<Token>& values, std::size_t shard_tokens, const std::string& dtype,
            bool eot_begins = false)
      : held(values) {
    std::vector<TokenLayout> layouts;
    for (std::size_t first = 0; first < values.size(); first += shard_tokens) {
      const std::size_t count = std::min(shard_tokens, values.size() - first);
      const auto begin = values.begin() + static_cast<long>(first);
      TokenLayout layout;
      layout.eot_begins = eot_begins;
      layout.data_path = "shard" + std::to_string(layouts.size());
      layout.dtype = DType::parse(dtype);
      layout.tokens = count;
      layout.extents = {{layouts.size() % 3, count, 0}};  // aligned to nothing
      shards.push_back(std::string(layouts.size() % 3, '#') +
                       little_endian(std::vector<Token>(begin, begin + static_cast<long>(count))));
      layouts.push_back(layout);
    }
    stream = std::make_shared<const TokenStream>(layouts);
  }

  std::vector<Token> held;
  std::vector<std::string> shards;
  std::shared_ptr<const TokenStream> stream;
};

// Serves the reads of some samples and delivers them.
std::vector<std::byte> deliver(const Windows& windows, const std::vector<std::string>& shards,
                               const std::vector<std::uint64_t>& samples) {
  std::vector<std::byte> raw(samples.size() * windows.sample_bytes());
  std::vector<std::byte*> targets;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    targets.push_back(raw.data() + i * windows.sample_bytes());
  }
  std::vector<Read> reads;
  windows.locate(0, 0, samples, targets, reads);
  EXPECT_LE(reads.size(), samples.size() * windows.reads_per_part());
  for (const Read& read : reads) {
    const std::string& shard = shards.at(read.from.shard);
    EXPECT_LE(read.from.end_bytes(), shard.size());
    std::memcpy(read.into, shard.data() + read.from.offset_bytes, read.from.size_bytes);
  }
  std::vector<std::byte> out(windows.batch_bytes(samples.size()));
  windows.deliver({.samples = samples, .bytes = raw.data()}, out.data());
  return out;
}

template <typename To>
To loaded(const std::vector<std::byte>& bytes, std::uint64_t at) {
  To value{};
  std::memcpy(&value, bytes.data() + at, sizeof(To));
  return value;
}

template <typename From, typename To>
void expect_twin(const std::string& from, TokenType to, std::size_t shard_tokens, bool anywhere) {
  std::vector<From> values;
  for (int i = 0; i < 211; ++i) values.push_back(static_cast<From>((i * 37 + 5) % 127));
  const StreamRig<From> rig(values, shard_tokens, from);
  for (const std::uint64_t block : {1, 7, 16, 33, 210}) {
    const Windows windows({{.stream = rig.stream}},
                          {.block_size = block, .to = to, .anywhere = anywhere});
    ASSERT_EQ(windows.size(), anywhere ? 211 - block : 210 / block);
    std::vector<std::uint64_t> samples;
    for (std::uint64_t i = 0; i < windows.size(); ++i) samples.push_back(windows.size() - 1 - i);
    const std::vector<std::byte> out = deliver(windows, rig.shards, samples);
    const Windows::Shape shape = windows.shape(samples.size());
    for (std::size_t row = 0; row < samples.size(); ++row) {
      const std::uint64_t start = anywhere ? samples[row] : samples[row] * block;
      for (std::uint64_t i = 0; i < block; ++i) {
        const std::uint64_t at = (row * block + i) * sizeof(To);
        ASSERT_EQ(loaded<To>(out, at), static_cast<To>(values[start + i])) << from << " x";
        ASSERT_EQ(loaded<To>(out, shape.y_bytes + at), static_cast<To>(values[start + i + 1]));
      }
    }
  }
}

TEST(Windows, AreThoseOfANaiveTwinInEveryType) {
  for (const std::size_t shard_tokens : {1, 3, 50, 1000}) {
    for (const bool anywhere : {false, true}) {
      SCOPED_TRACE(testing::Message() << shard_tokens << " tokens a shard");
      expect_twin<std::uint16_t, std::int64_t>("uint16", TokenType::i64, shard_tokens, anywhere);
      expect_twin<std::uint16_t, std::int32_t>("uint16", TokenType::i32, shard_tokens, anywhere);
      expect_twin<std::uint16_t, std::uint16_t>("uint16", TokenType::u16, shard_tokens, anywhere);
      expect_twin<std::uint32_t, std::int64_t>("uint32", TokenType::i64, shard_tokens, anywhere);
      expect_twin<std::uint32_t, std::uint16_t>("uint32", TokenType::u16, shard_tokens, anywhere);
      expect_twin<std::uint8_t, std::int64_t>("uint8", TokenType::i64, shard_tokens, anywhere);
      expect_twin<std::int32_t, std::int64_t>("int32", TokenType::i64, shard_tokens, anywhere);
      expect_twin<std::int64_t, std::int32_t>("int64", TokenType::i32, shard_tokens, anywhere);
      expect_twin<std::int8_t, std::uint8_t>("int8", TokenType::u8, shard_tokens, anywhere);
    }
  }
}

TEST(Windows, NumberTheSourcesOfAMixtureOneBehindTheOther) {
  const StreamRig<std::uint16_t> first(std::vector<std::uint16_t>(25, 1), 4, "uint16");
  const StreamRig<std::uint32_t> second(std::vector<std::uint32_t>(31, 70000), 9, "uint32");
  std::vector<std::string> shards = first.shards;
  shards.insert(shards.end(), second.shards.begin(), second.shards.end());
  const auto base = static_cast<std::uint32_t>(first.shards.size());
  const Windows windows({{.stream = first.stream}, {.stream = second.stream, .first_shard = base}},
                        {.block_size = 6, .to = TokenType::i64});
  EXPECT_EQ(windows.size(), 9U);
  EXPECT_EQ(windows.size_of(0), 4U);
  EXPECT_EQ(windows.size_of(1), 5U);
  const std::vector<std::byte> out = deliver(windows, shards, {8, 0, 4, 3});
  const std::int64_t expected[] = {70000, 1, 70000, 1};
  for (std::uint64_t row = 0; row < 4; ++row) {
    for (std::uint64_t i = 0; i < 6; ++i) {
      EXPECT_EQ(loaded<std::int64_t>(out, (row * 6 + i) * 8), expected[row]);
    }
  }
  EXPECT_EQ(windows.path(0), "shard0");
  EXPECT_EQ(windows.path(base + 2), "shard2");
  EXPECT_EQ(windows.data_bytes(), 25U * 2 + 31 * 4);
}

TEST(Windows, NameTheTokenThatDoesNotFit) {
  std::vector<std::int32_t> values(40, 5);
  values[23] = -1;
  const StreamRig<std::int32_t> rig(values, 10, "int32");
  const Windows windows({{.stream = rig.stream}}, {.block_size = 10, .to = TokenType::u16});
  try {
    (void)deliver(windows, rig.shards, {0, 2});
    FAIL() << "delivered";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "shard2: token -1 at position 23 of the stream does not fit dtype uint16; use a "
                 "wider dtype, such as int64");
  }
}

TEST(Windows, RefuseBatchesThatCannotBeAddressed) {
  const StreamRig<std::uint16_t> rig(std::vector<std::uint16_t>(40, 1), 40, "uint16");
  const Windows windows({{.stream = rig.stream}}, {.block_size = 10, .separate = true});
  EXPECT_THROW((void)windows.shape(~std::uint64_t{0} / 4), std::invalid_argument);
  EXPECT_THROW((void)windows.shape(std::uint64_t{1} << 31), std::invalid_argument);
  EXPECT_NO_THROW((void)windows.shape(1000));
}

struct Apart {
  std::vector<std::int32_t> positions, cu_seqlens;
};
Apart apart_of(const Windows& windows, const std::vector<std::byte>& out, std::uint64_t rows) {
  const Windows::Shape shape = windows.shape(rows);
  Apart apart;
  for (std::uint64_t i = 0; i < rows * windows.options().block_size; ++i) {
    apart.positions.push_back(loaded<std::int32_t>(out, shape.positions_bytes + i * 4));
  }
  for (std::uint64_t i = 0; i < loaded<std::uint64_t>(out, shape.cu_count_bytes); ++i) {
    apart.cu_seqlens.push_back(loaded<std::int32_t>(out, shape.cu_seqlens_bytes + i * 4));
  }
  return apart;
}
// Token by token: starts_at[i] says whether a document starts at token i.
Apart naive_apart(const std::vector<bool>& starts_at, std::uint64_t block,
                  const std::vector<std::uint64_t>& samples) {
  Apart apart;
  for (const std::uint64_t sample : samples) {
    std::int32_t position = 0;
    for (std::uint64_t i = 0; i < block; ++i) {
      if (i == 0 || starts_at[sample * block + i]) {
        position = 0;
        apart.cu_seqlens.push_back(static_cast<std::int32_t>(apart.positions.size()));
      }
      apart.positions.push_back(position++);
    }
  }
  apart.cu_seqlens.push_back(static_cast<std::int32_t>(apart.positions.size()));
  return apart;
}

TEST(Windows, SeparateDocumentsByTheTokenThatEndsOrBeginsThem) {
  std::vector<std::uint16_t> values;
  for (std::size_t i = 0; i < 101; ++i) {
    values.push_back(i % 7 == 0 || i % 10 < 2 || i == 19 || i == 39 ? 9 : 1);
  }
  for (const bool begins : {false, true}) {
    const StreamRig<std::uint16_t> rig(values, 13, "uint16", begins);
    std::vector<bool> starts_at(102, false);
    const std::size_t behind = begins ? 0 : 1;
    for (std::size_t i = 0; i < 101; ++i) starts_at[i + behind] = values[i] == 9;
    for (const std::uint64_t block : {1, 5, 10, 100}) {
      const Windows windows({{.stream = rig.stream, .eot = 9}},
                            {.block_size = block, .separate = true});
      std::vector<std::uint64_t> samples;
      for (std::uint64_t i = windows.size(); i > 0; --i) samples.push_back(i - 1);
      const Apart found = apart_of(windows, deliver(windows, rig.shards, samples), samples.size());
      const Apart twin = naive_apart(starts_at, block, samples);
      EXPECT_EQ(found.positions, twin.positions) << begins << " by " << block;
      EXPECT_EQ(found.cu_seqlens, twin.cu_seqlens) << begins << " by " << block;
    }
  }
}

TEST(Windows, SeparateDocumentsByTheIndex) {
  TokenFolder memory;
  MegatronIndex index;
  index.lengths = {4, 0, 3, 10, 1, 1, 0, 12, 10};
  std::int64_t bytes = 0;
  for (const std::int32_t length : index.lengths) {
    index.pointers.push_back(bytes);
    bytes += length * 2;
  }
  index.boundaries = {0, 1, 2, 4, 5, 6, 7, 8, 9};  // 3 + 10 are one document
  const std::string text(static_cast<std::size_t>(bytes), '\1');
  memory.write("p.idx", index.bytes());
  memory.write("p.bin", text);
  const std::vector<TokenLayout> layouts{memory.open("p.idx")};
  const auto stream = std::make_shared<const TokenStream>(layouts);
  std::vector<bool> starts_at(42, false);
  for (const std::size_t start : {0, 4, 17, 18, 19, 31}) starts_at[start] = true;
  for (const std::uint64_t most_bytes : {8, 1 << 20}) {
    const auto read = [bytes_of_index = index.bytes()](std::span<const Read> reads) {
      for (const Read& one : reads) {
        std::memcpy(one.into, bytes_of_index.data() + one.from.offset_bytes, one.from.size_bytes);
      }
    };
    const auto documents = std::make_shared<const Documents>(stream, layouts, read, most_bytes);
    const Windows windows({{.stream = stream, .documents = documents}},
                          {.block_size = 8, .separate = true});
    const std::vector<std::uint64_t> samples{4, 0, 2, 1, 3};
    const Apart found = apart_of(windows, deliver(windows, {text}, samples), samples.size());
    const Apart twin = naive_apart(starts_at, 8, samples);
    EXPECT_EQ(found.positions, twin.positions);
    EXPECT_EQ(found.cu_seqlens, twin.cu_seqlens);
  }
}

}  // namespace
}  // namespace lowtide::windows_test

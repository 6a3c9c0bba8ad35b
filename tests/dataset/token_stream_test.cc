#include "dataset/token_stream.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "lowtide/error.h"

namespace lowtide::token_stream_test {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

TokenLayout layout_of(const std::string& path, std::vector<TokenExtent> extents,
                      const std::string& dtype = "uint16", const std::string& format = "nanogpt") {
  TokenLayout layout;
  layout.format = format;
  layout.data_path = path;
  layout.dtype = DType::parse(dtype);
  layout.extents = std::move(extents);
  for (const TokenExtent& extent : layout.extents) layout.tokens += extent.tokens;
  return layout;
}

std::string error_of(const std::vector<TokenLayout>& layouts) {
  try {
    return "no error, " + std::to_string(TokenStream(layouts).size());
  } catch (const FormatError& error) {
    return error.what();
  } catch (const std::invalid_argument& error) {
    return std::string("argument: ") + error.what();
  }
}

// Each document has the bytes before it that its file needs, but for those in front of the first.
TokenLayout layout_of_records(const std::string& path,
                              const std::vector<std::pair<std::uint32_t, std::uint32_t>>& records) {
  TokenLayout layout = layout_of(path, {}, "uint32", "nanogpt");
  const auto all = std::make_shared<TokenRecords>(static_cast<std::uint32_t>(records.size()));
  for (const auto& [offset_bytes, tokens] : records) all->add(offset_bytes, tokens);
  layout.tokens = all->tokens();
  layout.records = all;
  return layout;
}

// Shard and byte of every token, one by one.
struct Byte {
  std::uint32_t shard;
  std::uint64_t offset_bytes;
};
std::vector<Byte> naive_places(const std::vector<TokenLayout>& layouts, std::uint64_t item) {
  std::vector<Byte> places;
  for (std::size_t shard = 0; shard < layouts.size(); ++shard) {
    for (const TokenExtent& extent : layouts[shard].extents) {
      for (std::uint64_t i = 0; i < extent.tokens; ++i) {
        places.push_back({static_cast<std::uint32_t>(shard), extent.offset_bytes + i * item});
      }
    }
    const TokenRecords* const records = layouts[shard].records.get();
    for (std::uint64_t d = 0; records != nullptr && d < records->documents(); ++d) {
      for (std::uint64_t i = 0; i < records->first_token(d + 1) - records->first_token(d); ++i) {
        places.push_back(
            {static_cast<std::uint32_t>(shard), (*records)[d].offset_bytes + i * item});
      }
    }
  }
  return places;
}

void expect_every_range(const std::vector<TokenLayout>& layouts) {
  const TokenStream stream(layouts);
  const std::vector<Byte> places = naive_places(layouts, 4);
  ASSERT_EQ(stream.size(), places.size());
  for (std::uint64_t first = 0; first <= places.size(); ++first) {
    for (std::uint64_t count = 0; count <= places.size() - first; ++count) {
      std::vector<std::byte> memory(count * 4 + 1);
      std::vector<Read> reads;
      stream.locate(first, count, 7, memory.data(), reads);
      ASSERT_LE(reads.size(), stream.most_reads(count));
      std::uint64_t token = first;
      std::byte* into = memory.data();
      for (const Read& read : reads) {
        ASSERT_GT(read.from.size_bytes, 0U);
        ASSERT_EQ(read.into, into);
        for (std::uint64_t at = 0; at < read.from.size_bytes; at += 4, ++token) {
          ASSERT_EQ(read.from.shard, 7 + places[token].shard);
          ASSERT_EQ(read.from.offset_bytes + at, places[token].offset_bytes);
        }
        into += read.from.size_bytes;
      }
      ASSERT_EQ(token, first + count);
    }
  }
  for (std::uint64_t token = 0; token < places.size(); ++token) {
    EXPECT_EQ(stream.path_of(token), layouts[places[token].shard].data_path);
  }
}

TEST(TokenStream, LocatesEveryRangeWhereItsTokensLie) {
  expect_every_range({layout_of("a", {{0, 3, 0}, {11, 1, 0}, {20, 5, 0}}, "uint32"),
                      layout_of("b", {}, "uint32"), layout_of("c", {{1, 1, 0}}, "uint32"),
                      layout_of("d", {{1024, 30, 0}}, "uint32")});
}

TEST(TokenStream, LocatesEveryRangeOfRecords) {
  expect_every_range(
      {layout_of_records("equal", {{10, 4}, {31, 4}, {52, 4}, {73, 4}}),
       layout_of_records("none", {}), layout_of_records("empty", {{5, 0}, {6, 0}}),
       layout_of_records("unlike", {{3, 0}, {7, 2}, {20, 5}, {50, 0}, {50, 0}, {61, 1}, {70, 0}}),
       layout_of_records("one", {{8, 6}}), layout_of("plain", {{1, 3, 0}}, "uint32")});
}

TEST(TokenRecords, HoldATableOnlyIfTheyDiffer) {
  TokenRecords records(1000);
  for (std::uint32_t i = 0; i < 999; ++i) records.add(100 + 9 * i, 2);
  EXPECT_TRUE(records.regular());
  EXPECT_EQ(records.held_bytes(), 0U);
  EXPECT_EQ(records[998].offset_bytes, 100U + 9 * 998);
  records.add(100 + 9 * 999 + 1, 2);
  EXPECT_FALSE(records.regular());
  EXPECT_EQ(records.held_bytes(), TokenRecords::table_bytes(1000));
  EXPECT_EQ(records[998].offset_bytes, 100U + 9 * 998);
  EXPECT_EQ(records[999].offset_bytes, 100U + 9 * 999 + 1);
  EXPECT_EQ(records.document_of(1999), 999U);
  EXPECT_EQ(records.first_token(1000), 2000U);
}

TEST(TokenStream, HoldsTheRecordsThatItCounts) {
  const TokenStream equal({layout_of_records("a", {{10, 4}, {31, 4}, {52, 4}})});
  const TokenStream unlike({layout_of_records("a", {{10, 4}, {31, 4}, {52, 5}})});
  EXPECT_EQ(unlike.held_bytes(), equal.held_bytes() + 3 * 8);
}

TEST(TokenStream, KnowsTheMostReadsThatARangeNeeds) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<TokenLayout> layouts;
    for (std::size_t i = 0; i < 1 + random() % 8; ++i) {
      std::vector<TokenExtent> extents;
      if (round % 2 == 1) {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> records;
        for (std::uint32_t r = 0; r < random() % 5; ++r)
          records.emplace_back(r * 99, static_cast<std::uint32_t>(random() % 5));
        layouts.push_back(layout_of_records("s", records));
        continue;
      }
      for (std::size_t r = 0; r < 1 + random() % 2; ++r)
        extents.push_back({r * 99, 1 + random() % 9, 0});
      layouts.push_back(layout_of("s", extents));
    }
    const TokenStream stream(layouts);
    for (std::uint64_t count = 1; count <= stream.size(); ++count) {
      std::size_t most = 0;
      std::vector<std::byte> memory(count * 4);
      for (std::uint64_t first = 0; first + count <= stream.size(); ++first) {
        std::vector<Read> reads;
        stream.locate(first, count, 0, memory.data(), reads);
        most = std::max(most, reads.size());
      }
      ASSERT_LE(most, stream.most_reads(count));
      ASSERT_LE(stream.most_reads(count), most + 1) << "of " << count << " in " << stream.size();
    }
  }
}

TEST(TokenStream, SplitsReadsThatAreTooLongForOne) {
  const TokenStream stream({layout_of("big", {{64, 3 * kGiB, 0}}, "uint16")});
  std::vector<Read> reads;
  // An address that is only calculated with: nothing is read, and no test can hold 4 GiB.
  auto* const into = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40);
  stream.locate(5, 2 * kGiB + 3, 0, into, reads);
  ASSERT_EQ(reads.size(), 5U);
  std::uint64_t at = 64 + 5 * 2;
  for (const Read& read : reads) {
    EXPECT_EQ(read.from.offset_bytes, at);
    at += read.from.size_bytes;
  }
  EXPECT_EQ(at, 64 + 2 * (5 + 2 * kGiB + 3));
  EXPECT_LE(reads.size(), stream.most_reads(2 * kGiB + 3));
}

TEST(TokenStream, GoesBeyond32Bits) {
  const TokenStream stream(
      {layout_of("a", {{0, 5 * kGiB, 0}}), layout_of("b", {{0, 5 * kGiB, 0}})});
  std::vector<Read> reads;
  std::byte memory[8];
  stream.locate(5 * kGiB - 2, 4, 0, memory, reads);
  ASSERT_EQ(reads.size(), 2U);
  EXPECT_EQ(reads[0].from.offset_bytes, 2 * (5 * kGiB - 2));
  EXPECT_EQ(reads[1].from.offset_bytes, 0U);
  EXPECT_EQ(stream.size(), 10 * kGiB);
}

TEST(TokenStream, RefusesFilesThatDoNotAgree) {
  const TokenLayout first = layout_of("a.bin", {{0, 3, 0}});
  EXPECT_EQ(error_of({first, layout_of("b.bin", {{0, 3, 0}}, "uint32")}),
            "b.bin: dtype is '<u4', but a.bin has '<u2'");
  EXPECT_EQ(error_of({first, first, layout_of("c.bin", {{0, 3, 0}}, "uint16", "llmc")}),
            "c.bin: format is llmc, but a.bin has nanogpt");
  EXPECT_EQ(error_of({}), "argument: tokens: at least one file is needed");
  const TokenLayout huge = layout_of("h", {{0, kMostTokens - 1, 0}});
  EXPECT_EQ(error_of({huge, huge}), "h: expected at most 2^60 tokens in total, found more");
}

TEST(TokenStream, HashesTheLayoutAndNotThePaths) {
  std::set<std::uint64_t> seen;
  const auto hash = [](const std::vector<TokenLayout>& layouts) {
    return TokenStream(layouts).layout_hash();
  };
  const TokenLayout five = layout_of("a", {{0, 5, 0}}), three = layout_of("b", {{0, 3, 0}});
  seen.insert(hash({five, three}));
  seen.insert(hash({three, five}));
  seen.insert(hash({five}));
  seen.insert(hash({layout_of("a", {{0, 8, 0}})}));
  seen.insert(hash({layout_of("a", {{0, 5, 0}}, "uint32")}));
  seen.insert(hash({layout_of("a", {{0, 5, 0}}, "uint16", "llmc")}));
  EXPECT_EQ(seen.size(), 6U);
  EXPECT_EQ(hash({five}), hash({layout_of("elsewhere", {{1024, 5, 0}})}));
}

}  // namespace
}  // namespace lowtide::token_stream_test

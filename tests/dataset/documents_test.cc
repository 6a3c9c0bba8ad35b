#include "dataset/documents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "dataset/ragged.h"
#include "support/mds_files.h"

namespace lowtide::documents_test {
namespace {

using Offsets = std::vector<std::uint64_t>;
// The lengths of the sequences of each document of each pair.
using Pair = std::vector<std::vector<std::int32_t>>;

// Which index the pairs have: Megatron's pointers, the ends of datatrove, the byte offsets of a
// LitData chunk, or the records of an MDS shard.
enum class Kind { pointers, ends, offsets, records };
constexpr Kind kKinds[] = {Kind::pointers, Kind::ends, Kind::offsets, Kind::records};

// Pairs in memory, and where their documents start by counting.
struct DocumentsRig {
  explicit DocumentsRig(const std::vector<Pair>& pairs, Kind kind = Kind::pointers) {
    for (const Pair& pair : pairs) {
      MegatronIndex index;
      std::vector<std::uint64_t> ends;
      std::vector<std::string> samples;
      std::int64_t bytes = 0;
      for (const auto& document : pair) {
        const std::int64_t before = bytes;
        index.boundaries.push_back(static_cast<std::int64_t>(index.lengths.size()));
        starts.push_back(tokens + static_cast<std::uint64_t>(bytes) / 2);
        for (const std::int32_t length : document) {
          index.lengths.push_back(length);
          index.pointers.push_back(bytes);
          bytes += length * 2;
        }
        ends.push_back(static_cast<std::uint64_t>(bytes) / 2);
        samples.emplace_back(static_cast<std::size_t>(bytes - before), '\1');
      }
      index.boundaries.push_back(static_cast<std::int64_t>(index.lengths.size()));
      tokens += static_cast<std::uint64_t>(bytes) / 2;
      const std::string name = "p" + std::to_string(layouts.size());
      if (kind == Kind::offsets || kind == Kind::records) {
        if (kind == Kind::records) std::ranges::transform(samples, samples.begin(), mds_sample);
        indexes.push_back(tabled(samples, kind == Kind::records ? only_tokens("bytes") : ""));
        memory.write(name, indexes.back());
        layouts.push_back(memory.open(name, given_dtype("uint16")));
        continue;
      }
      const std::string text(static_cast<std::size_t>(bytes), '\1');
      const bool has_ends = kind == Kind::ends;
      indexes.push_back(has_ends ? little_endian(ends) : index.bytes());
      const std::string index_name = name + (has_ends ? ".ds.index" : ".idx");
      memory.write(index_name, indexes.back());
      memory.write(name + (has_ends ? ".ds" : ".bin"), text);
      layouts.push_back(memory.open(index_name));
    }
    stream = std::make_shared<const TokenStream>(layouts);
    starts.push_back(tokens);
  }
  [[nodiscard]] Documents open(std::uint64_t most_bytes) const {
    return Documents(
        stream, layouts, [this](std::span<const Read> wanted) { read(wanted); }, most_bytes);
  }
  void read(std::span<const Read> wanted) const {
    ++calls;
    for (const Read& one : wanted) {
      ++reads;
      const std::string& index = indexes.at(one.from.shard);
      ASSERT_LE(one.from.end_bytes(), index.size());
      std::memcpy(one.into, index.data() + one.from.offset_bytes, one.from.size_bytes);
    }
  }
  void expect_all(std::uint64_t most_bytes) const;

  TokenFolder memory;
  std::vector<TokenLayout> layouts;
  std::vector<std::string> indexes;
  mutable int calls = 0, reads = 0;
  std::shared_ptr<const TokenStream> stream;
  Offsets starts;  // and the end
  std::uint64_t tokens = 0;
};

void DocumentsRig::expect_all(std::uint64_t most_bytes) const {
  SCOPED_TRACE(testing::Message() << "a table of " << most_bytes << " bytes");
  const Documents documents = open(most_bytes);
  ASSERT_EQ(documents.size() + 1, starts.size());
  EXPECT_LE(Documents::table_bytes(layouts, most_bytes), std::max<std::uint64_t>(8, most_bytes));
  for (std::size_t first = 0; first <= starts.size(); ++first) {
    for (const std::size_t count : {0UL, 1UL, 2UL, 7UL, starts.size() - first}) {
      if (count > starts.size() - first) continue;
      Offsets found(count);
      documents.offsets(first, found);
      const auto begin = starts.begin() + static_cast<long>(first);
      ASSERT_EQ(found, Offsets(begin, begin + static_cast<long>(count))) << "from " << first;
    }
  }
  for (std::uint64_t first = 0; first < tokens; ++first) {
    for (const std::uint64_t ahead : {1, 5, 40, 1000}) {
      const std::uint64_t last = std::min(first + ahead, tokens);
      Offsets found, twin;
      documents.starts_between(first, last, &found);
      for (const std::uint64_t start : starts) {
        const bool inside = start > first && start < last;
        if (inside && (twin.empty() || twin.back() != start)) twin.push_back(start);
      }
      ASSERT_EQ(found, twin) << first << " to " << last;
    }
  }
}

Pair random_pair(std::mt19937* random, std::size_t documents, int empty_of_8) {
  Pair pair(documents);
  for (auto& document : pair) {
    if (static_cast<int>((*random)() % 8) < empty_of_8) continue;
    for (std::size_t i = 0; i < 1 + (*random)() % 3; ++i) {
      document.push_back(static_cast<std::int32_t>((*random)() % 6));
    }
  }
  pair.push_back({3});
  return pair;
}

TEST(Documents, AreThoseOfANaiveCountWhateverFitsInMemory) {
  std::mt19937 random(9);
  for (const int empty_of_8 : {0, 2, 6}) {
    const std::vector<Pair> pairs{random_pair(&random, 30, empty_of_8), random_pair(&random, 1, 0),
                                  random_pair(&random, 25, empty_of_8)};
    for (const Kind kind : kKinds) {
      const DocumentsRig rig(pairs, kind);
      for (const std::uint64_t most_bytes : {0, 8, 16, 24, 100, 240, 1 << 20}) {
        rig.expect_all(most_bytes);
      }
    }
  }
}

TEST(Documents, StandEmptyOnesAtTheStartAndAtTheEnd) {
  const std::vector<Pair> pairs{{{}, {}, {0}, {4}, {}}, {{}, {0, 0}}, {{}, {5, 1}, {}, {}}};
  for (const Kind kind : kKinds) {
    const DocumentsRig rig(pairs, kind);
    for (const std::uint64_t most_bytes : {0, 16, 1 << 20}) rig.expect_all(most_bytes);
  }
}

TEST(Documents, ReadFewSequencesOfDocumentsThatHaveMany) {
  Pair pair;
  for (int i = 0; i < 40; ++i) pair.emplace_back(100, i % 2);
  const DocumentsRig rig({pair});
  const Documents sparse = rig.open(16), whole = rig.open(1 << 20);
  Offsets some(rig.starts.size()), all(rig.starts.size());
  sparse.offsets(0, some);
  whole.offsets(0, all);
  EXPECT_EQ(some, rig.starts);
  EXPECT_EQ(all, rig.starts);
}

TEST(Documents, GoOverManyPiecesOfTheIndex) {
  const DocumentsRig rig({Pair(20'000, {1, 2})});
  const Documents documents = rig.open(1 << 20);
  Offsets all(20'001);
  documents.offsets(0, all);
  EXPECT_EQ(all, rig.starts);
}

TEST(Documents, NeverLeaveTheStreamWhenTheIndexChangesUnderThem) {
  DocumentsRig rig(std::vector<Pair>{Pair{{4}, {5}, {6}, {2}}});
  const Documents documents = rig.open(8);
  // Nothing but the numbers changes, so every pointer and boundary is read as written.
  MegatronIndex lies;
  lies.lengths = {4, 5, 6, 2};
  lies.pointers = {-2, 1 << 20, -1000, std::int64_t{1} << 62};
  lies.boundaries = {0, -7, 99, 3, 4};
  rig.indexes[0] = lies.bytes();
  Offsets found(5);
  documents.offsets(0, found);
  for (const std::uint64_t start : found) EXPECT_LE(start, rig.tokens);

  DocumentsRig with_ends(std::vector<Pair>{Pair{{4}, {5}, {6}, {2}}}, Kind::ends);
  const Documents after_ends = with_ends.open(8);
  with_ends.indexes[0] = little_endian(std::vector<std::int64_t>{-1, 1 << 20, 0, 17});
  after_ends.offsets(0, found);
  for (const std::uint64_t start : found) EXPECT_LE(start, with_ends.tokens);

  DocumentsRig with_offsets(std::vector<Pair>{Pair{{4}, {5}, {6}, {2}}}, Kind::offsets);
  const Documents at_offsets = with_offsets.open(8);
  with_offsets.indexes[0] = little_endian(std::vector<std::uint32_t>{4, 0, 1, UINT32_MAX, 7, 7});
  at_offsets.offsets(0, found);
  for (const std::uint64_t start : found) EXPECT_LE(start, with_offsets.tokens);
}

TEST(Documents, OfRecordsAreNeverRead) {
  const DocumentsRig rig({{{4}, {}, {6}}, {{1, 1}}}, Kind::records);
  rig.expect_all(8);
  EXPECT_EQ(rig.calls, 0);
}

TEST(Documents, ThatAllFitIntoMemoryAreReadOnce) {
  const auto held = std::make_shared<int>(0);
  const DocumentsRig rig({Pair(100, {1, 2})});
  const Documents documents(
      rig.stream, rig.layouts, [&rig, held](std::span<const Read> wanted) { rig.read(wanted); },
      1 << 20);
  EXPECT_EQ(rig.calls, 2) << "one read per array";
  EXPECT_EQ(held.use_count(), 1) << "what reads is released";
  Offsets found(101);
  documents.offsets(0, found);
  documents.starts_between(5, 200, &found);
  EXPECT_EQ(rig.calls, 2);
}

TEST(Documents, OfAWindowTakeTwoReadsIfTheyDoNotFit) {
  const DocumentsRig rig({Pair(5000, {1, 2})});
  const Documents documents = rig.open(100 * 8);  // every 50th
  for (const std::uint64_t first : {0, 77, 7000}) {
    rig.calls = rig.reads = 0;
    Offsets found;
    documents.starts_between(first, first + 64, &found);
    EXPECT_GE(found.size(), 21U);
    EXPECT_EQ(rig.calls, 2) << first;
    EXPECT_EQ(rig.reads, 2) << first;
  }
}

TEST(Documents, AreFoundByASearchIfManyLieBetweenTwoInTheTable) {
  const DocumentsRig rig({Pair(20'000, {2})});
  const Documents documents = rig.open(0);
  for (const std::uint64_t first : {0, 12'345, 39'990}) {
    rig.calls = 0;
    Offsets found;
    documents.starts_between(first, first + 6, &found);
    const Offsets expected =
        first == 12'345 ? Offsets{first + 1, first + 3, first + 5} : Offsets{first + 2, first + 4};
    EXPECT_EQ(found, expected);
    EXPECT_LE(rig.calls, 2 * 7) << "log2(20000 / 512) steps and the last reads";
  }
}

TEST(Ragged, HasEveryDocumentAsASample) {
  const DocumentsRig rig({{{5, 3}, {0}, {7}}, {{1}, {2, 2, 2}}});
  for (const std::uint64_t most_bytes : {std::uint64_t{1} << 20, std::uint64_t{16}}) {
    const Ragged ragged(rig.stream, std::make_shared<const Documents>(rig.open(most_bytes)));
    ASSERT_EQ(ragged.size(), 5U);
    EXPECT_EQ(ragged.sample_bytes(), 8 * 2U) << "of the longest";
    EXPECT_EQ(ragged.data_bytes(), 22 * 2U);
    const Offsets samples{4, 1, 0, 3};
    Offsets lengths(samples.size());
    ragged.lengths(0, samples, lengths);
    EXPECT_EQ(lengths, (Offsets{6, 0, 8, 1}));
    std::vector<std::byte> memory(64);
    const std::vector<std::byte*> targets{&memory[0], &memory[20], &memory[30], &memory[50]};
    std::vector<Read> reads;
    ragged.locate(0, 0, samples, targets, reads);
    ASSERT_EQ(reads.size(), 3U) << "an empty document needs no read";
    EXPECT_EQ(reads[0].from.shard, 1U);
    EXPECT_EQ(reads[0].from.offset_bytes, 2U);
    EXPECT_EQ(reads[0].from.size_bytes, 12U);
    EXPECT_EQ(reads[0].into, targets[0]);
    EXPECT_EQ(reads[1].from.offset_bytes, 0U);
    EXPECT_EQ(reads[1].from.size_bytes, 16U);
    EXPECT_EQ(reads[1].into, targets[2]);
  }
}

}  // namespace
}  // namespace lowtide::documents_test

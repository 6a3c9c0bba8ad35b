#include "token_format/megatron.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "support/token_files.h"

namespace lowtide::megatron_test {
namespace {

constexpr std::int32_t kLongest = std::numeric_limits<std::int32_t>::max();

// Three documents of uint16, of which the second has two sequences and the third none.
MegatronIndex normal() {
  return {.lengths = {5, 1, 4}, .pointers = {0, 10, 12}, .boundaries = {0, 1, 3, 3}};
}

TokenFolder pair_of(const MegatronIndex& index, std::uint64_t data_bytes = 20) {
  TokenFolder folder;
  folder.write("t.idx", index.bytes());
  folder.write("t.bin", "", data_bytes);
  return folder;
}

std::string error_of(const MegatronIndex& index, std::uint64_t data_bytes = 20) {
  return pair_of(index, data_bytes).error("t.bin");
}

void expect_runs(const TokenLayout& layout, const std::vector<TokenExtent>& expected) {
  ASSERT_EQ(layout.extents.size(), expected.size());
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(layout.extents[i].offset_bytes, expected[i].offset_bytes);
    EXPECT_EQ(layout.extents[i].tokens, expected[i].tokens);
    EXPECT_EQ(layout.extents[i].first_sequence, expected[i].first_sequence);
    tokens += expected[i].tokens;
  }
  EXPECT_EQ(layout.tokens, tokens);
}

TEST(Megatron, IsOneRunWhicheverFileOfThePairWasNamed) {
  TokenFolder folder = pair_of(normal());
  for (const char* path : {"t.idx", "t.bin"}) {
    SCOPED_TRACE(path);
    const TokenLayout layout = folder.open(path);
    EXPECT_EQ(layout.format, "megatron");
    EXPECT_EQ(layout.data_path, "t.bin");
    EXPECT_EQ(layout.dtype, DType::parse("<u2"));
    expect_runs(layout, {{0, 10, 0}});
    ASSERT_TRUE(layout.documents);
    EXPECT_EQ(layout.documents->path, "t.idx");
    EXPECT_EQ(layout.documents->sequences, 3u);
    EXPECT_EQ(layout.documents->documents, 3u);
    EXPECT_EQ(layout.documents->pointers_offset_bytes, 34u + 4 * 3);
    EXPECT_EQ(layout.documents->documents_offset_bytes, 34u + 12 * 3);
  }
}

TEST(Megatron, TakesTheNameOfItsPartnerFromTheLastSuffix) {
  TokenFolder folder;
  folder.write("a.b/v1.text", normal().bytes());
  EXPECT_EQ(folder.error("a.b/v1.text"),
            "a.b/v1.text: expected the Megatron data in a.b/v1.bin, found no file");
  folder.write("a.b/v1", normal().bytes());
  EXPECT_EQ(folder.error("a.b/v1"),
            "a.b/v1: expected the Megatron data in a.b/v1.bin, found no file");
  folder.write("v1.2.idx", normal().bytes());
  EXPECT_EQ(folder.error("v1.2.idx"),
            "v1.2.idx: expected the Megatron data in v1.2.bin, found no file");
}

TEST(Megatron, IsNotFoundBesideAFileThatIsNotItsData) {
  TokenFolder folder = pair_of(normal());
  folder.write("t.npy", std::string(20, '\1'));
  EXPECT_EQ(folder.open("t.npy").format, "olmo");
}

TEST(Megatron, IgnoresAnIndexOfSomethingElse) {
  TokenFolder folder;
  folder.write("t.bin", std::string(20, '\1'));
  for (const char* other : {"", "MMID", "an index of other things"}) {
    folder.write("t.idx", other);
    EXPECT_EQ(folder.open("t.bin").format, "nanogpt");
  }
  EXPECT_EQ(folder.error("t.bin", given_format("megatron")),
            "t.idx: expected the Megatron magic 'MMIDIDX\\x00\\x00', found 'an index '");
  EXPECT_EQ(folder.error("t.idx", given_format("megatron")),
            "t.idx: expected the Megatron magic 'MMIDIDX\\x00\\x00', found 'an index '");
}

TEST(Megatron, RefusesAnIndexUnderTheNameOfItsData) {
  TokenFolder folder;
  folder.write("t.bin", normal().bytes());
  EXPECT_EQ(folder.error("t.bin"),
            "t.bin: expected the Megatron data under this name, found the index itself");
}

TEST(Megatron, RefusesALegacyIndexByName) {
  TokenFolder folder;
  folder.write("t.idx", std::string("TNTIDX\0\0", 8) + std::string(100, '\1'));
  folder.write("t.bin", std::string(100, '\1'));
  const std::string text =
      "t.idx: expected the Megatron magic 'MMIDIDX\\x00\\x00', found the legacy format 'TNTIDX'; "
      "convert it with the tool that wrote it";
  EXPECT_EQ(folder.error("t.idx"), text);
  EXPECT_EQ(folder.error("t.bin"), text);
}

TEST(Megatron, KnowsTheCodesOfIntegersOnly) {
  const std::vector<std::pair<int, const char*>> known = {{1, "|u1"}, {2, "|i1"}, {3, "<i2"},
                                                          {4, "<i4"}, {5, "<i8"}, {8, "<u2"}};
  for (const auto& [code, dtype] : known) {
    MegatronIndex index{.lengths = {2}, .pointers = {0}, .boundaries = {0, 1}};
    index.code = static_cast<std::uint8_t>(code);
    EXPECT_EQ(pair_of(index).open("t.bin").dtype, DType::parse(dtype));
  }
  for (const auto& [code, hint] :
       {std::pair{0, ""}, {6, ", a float"}, {7, ", a float"}, {9, ""}, {255, ""}}) {
    MegatronIndex index = normal();
    index.code = static_cast<std::uint8_t>(code);
    EXPECT_EQ(error_of(index),
              "t.idx: expected the dtype code of an integer (1 to 5 or 8) at byte 17, found " +
                  std::to_string(code) + hint);
  }
}

TEST(Megatron, RefusesADtypeThatDiffersFromTheIndex) {
  EXPECT_EQ(pair_of(normal()).error("t.bin", given_dtype("uint16")), "no error, but megatron");
  EXPECT_EQ(pair_of(normal()).error("t.bin", given_dtype("int32")),
            "t.idx: dtype '<i4' was given, but the header says '<u2'");
}

TEST(Megatron, RefusesAWrongMagicOrVersion) {
  MegatronIndex index = normal();
  index.magic = std::string("MMIDIDX\0\1", 9);
  EXPECT_EQ(error_of(index),
            "t.idx: expected the Megatron magic 'MMIDIDX\\x00\\x00', found 'MMIDIDX\\x00\\x01'");
  index = normal();
  index.version = 2;
  EXPECT_EQ(error_of(index), "t.idx: expected Megatron index version 1, found 2");
}

TEST(Megatron, RefusesATruncatedHeader) {
  for (const std::size_t bytes : {9, 17, 33}) {
    TokenFolder folder = pair_of(normal());
    folder.write("t.idx", normal().bytes().substr(0, bytes));
    EXPECT_EQ(
        folder.error("t.bin"),
        "t.idx: expected a Megatron header of 34 bytes, found a file of " + std::to_string(bytes));
  }
}

TEST(Megatron, RefusesCountsThatContradictTheSizeOfTheIndex) {
  const auto message = [](const std::string& s, const std::string& d, std::size_t found) {
    return "t.idx: expected 34 + 12 * S + 8 * D bytes (plus S with modes) for S = " + s +
           " sequences and D = " + d + " document boundaries, found " + std::to_string(found);
  };
  MegatronIndex index = normal();
  const std::size_t size = index.bytes().size();
  index.modes = "ab";
  EXPECT_EQ(error_of(index), message("3", "4", size + 2));
  index.modes = "abcd";
  EXPECT_EQ(error_of(index), message("3", "4", size + 4));
  TokenFolder folder = pair_of(normal());
  folder.write("t.idx", normal().bytes().substr(0, size - 1));
  EXPECT_EQ(folder.error("t.bin"), message("3", "4", size - 1));
  const std::uint64_t lies[] = {4, std::uint64_t{1} << 40, (std::uint64_t{1} << 63) + 3,
                                (std::uint64_t{1} << 62) + 3,  // * 12 is 36 again
                                std::numeric_limits<std::uint64_t>::max()};
  for (const std::uint64_t lie : lies) {
    index = normal();
    index.sequences = lie;
    EXPECT_EQ(error_of(index), message(std::to_string(lie), "4", size));
    index = normal();
    index.boundary_count = lie == 4 ? 5 : lie;
    EXPECT_EQ(error_of(index), message("3", std::to_string(*index.boundary_count), size));
  }
}

// The file is as long as its counts say, but a hole: what is held must not grow with them.
TEST(Megatron, ReadsOnePieceOfAHugeIndexAtATime) {
  const MegatronIndex index{.lengths = {-1},
                            .sequences = std::uint64_t{1} << 40,
                            .boundary_count = std::uint64_t{1} << 40};
  TokenFolder folder = pair_of(index);
  folder.write("t.idx", index.bytes(), 34 + 20 * (std::uint64_t{1} << 40));
  EXPECT_EQ(folder.error("t.bin"), "t.idx: sequence 0: expected a length of 0 or more, found -1");
  EXPECT_LE(folder.most_read_bytes, 256u * 1024);
  EXPECT_LE(folder.read_bytes, 512u * 1024);
}

TEST(Megatron, ReadsModesOfMultimodalData) {
  MegatronIndex index = normal();
  index.modes = "abc";
  TokenFolder folder = pair_of(index);
  const TokenLayout layout = folder.open("t.bin");
  expect_runs(layout, {{0, 10, 0}});
  EXPECT_EQ(layout.documents->documents_offset_bytes, 34u + 12 * 3);
}

TEST(Megatron, RefusesSequencesOutsideTheData) {
  EXPECT_EQ(error_of(normal(), 19),
            "t.idx: sequence 2: expected 8 bytes at byte 12 of t.bin, found its end at byte 19");
  MegatronIndex index = normal();
  index.lengths[1] = -1;
  EXPECT_EQ(error_of(index), "t.idx: sequence 1: expected a length of 0 or more, found -1");
  index = normal();
  index.pointers[0] = -8;
  EXPECT_EQ(error_of(index), "t.idx: sequence 0: expected a pointer of 0 or more, found -8");
  index = normal();
  index.pointers[2] = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(error_of(index),
            "t.idx: sequence 2: expected 8 bytes at byte 9223372036854775807 of t.bin, found its "
            "end at byte 20");
  index = normal();
  index.lengths[2] = kLongest;
  EXPECT_EQ(error_of(index),
            "t.idx: sequence 2: expected 4294967294 bytes at byte 12 of t.bin, found its end at "
            "byte 20");
}

TEST(Megatron, AllowsDataThatNoSequenceUses) {
  TokenFolder folder = pair_of(normal(), 1000);
  expect_runs(folder.open("t.bin"), {{0, 10, 0}});
}

TEST(Megatron, BreaksTheRunWhereSequencesDoNotLieOneBehindTheOther) {
  const MegatronIndex index{.lengths = {2, 3, 1, 2, 2},
                            .pointers = {7, 11, 1, 3, 1},  // any byte; the last one again
                            .boundaries = {0, 5}};
  TokenFolder folder = pair_of(index);
  expect_runs(folder.open("t.bin"), {{7, 5, 0}, {1, 3, 2}, {1, 2, 4}});
}

TEST(Megatron, MakesNoRunOfEmptySequences) {
  // At the start, behind an extent, at the start of the next one, at the end.
  const MegatronIndex index{.lengths = {0, 2, 0, 0, 0, 3, 0},
                            .pointers = {0, 0, 4, 10, 10, 10, 16},
                            .boundaries = {0, 7}};
  TokenFolder folder = pair_of(index);
  expect_runs(folder.open("t.bin"), {{0, 2, 0}, {10, 3, 3}});
}

TEST(Megatron, RefusesAnEmptySequenceThatPointsElsewhere) {
  MegatronIndex index{.lengths = {2, 0, 3}, .pointers = {0, 6, 4}, .boundaries = {0, 3}};
  EXPECT_EQ(error_of(index),
            "t.idx: sequence 1: expected this empty sequence at byte 4, where sequence 2 is, found "
            "it at byte 6");
  index = {.lengths = {2, 0}, .pointers = {0, 6}, .boundaries = {0, 2}};
  EXPECT_EQ(error_of(index),
            "t.idx: sequence 1: expected this empty sequence at byte 4, where the data ends, found "
            "it at byte 6");
  index = {.lengths = {0}, .pointers = {21}, .boundaries = {0, 1}};
  EXPECT_EQ(error_of(index),
            "t.idx: sequence 0: expected 0 bytes at byte 21 of t.bin, found its end at byte 20");
}

TEST(Megatron, HasNoRunsWithoutTokens) {
  MegatronIndex index{.lengths = {}, .pointers = {}, .boundaries = {0}};
  TokenFolder none = pair_of(index);
  expect_runs(none.open("t.bin"), {});
  EXPECT_EQ(none.open("t.bin").documents->documents, 0u);
  index = {.lengths = {0, 0}, .pointers = {0, 0}, .boundaries = {0, 1, 2}};
  TokenFolder empty = pair_of(index, 0);
  expect_runs(empty.open("t.idx"), {});
  EXPECT_EQ(empty.open("t.idx").documents->documents, 2u);
}

TEST(Megatron, RefusesBoundariesThatDoNotGoFromZeroUpToTheSequences) {
  const auto with = [](std::vector<std::int64_t> boundaries) {
    MegatronIndex index = normal();
    index.boundaries = std::move(boundaries);
    return error_of(index);
  };
  EXPECT_EQ(with({1, 3}), "t.idx: document boundary 0: expected 0, found 1");
  EXPECT_EQ(with({-1, 3}), "t.idx: document boundary 0: expected 0, found -1");
  EXPECT_EQ(with({0, 2, 1, 3}), "t.idx: document boundary 2: expected 2 or more, found 1");
  EXPECT_EQ(with({0, 2}),
            "t.idx: document boundary 1: expected the number of sequences 3, found 2");
  EXPECT_EQ(with({0, 3, 4}),
            "t.idx: document boundary 2: expected the number of sequences 3, found 4");
  EXPECT_EQ(with({0}), "t.idx: document boundary 0: expected the number of sequences 3, found 0");
  EXPECT_EQ(with({}), "t.idx: expected at least 1 document boundary, found 0");
}

TEST(Megatron, CountsMoreThan32BitsOfTokens) {
  const std::int64_t each_bytes = std::int64_t{2} * kLongest;
  const MegatronIndex index{.lengths = {kLongest, kLongest, kLongest},
                            .pointers = {0, each_bytes, 2 * each_bytes},
                            .boundaries = {0, 1, 3}};
  TokenFolder folder = pair_of(index, 3 * static_cast<std::uint64_t>(each_bytes));
  expect_runs(folder.open("t.bin"), {{0, 3 * std::uint64_t{kLongest}, 0}});
}

// More sequences than one piece of the index holds, with a break in the middle of a piece.
TEST(Megatron, ReadsALongIndexInPieces) {
  constexpr std::int64_t kSequences = 100'001;
  constexpr std::int64_t kBreak = 70'000;
  MegatronIndex index;
  for (std::int64_t s = 0; s < kSequences; ++s) {
    index.lengths.push_back(3);
    index.pointers.push_back(6 * s + (s >= kBreak ? 8 : 0));
    index.boundaries.push_back(s);
  }
  index.boundaries.push_back(kSequences);
  TokenFolder folder = pair_of(index, 6 * kSequences + 8);
  const TokenLayout layout = folder.open("t.bin");
  expect_runs(layout, {{0, 3 * kBreak, 0}, {6 * kBreak + 8, 3 * (kSequences - kBreak), kBreak}});
  EXPECT_EQ(layout.documents->documents, static_cast<std::uint64_t>(kSequences));
  EXPECT_LE(folder.most_read_bytes, 256u * 1024);
  EXPECT_LE(folder.read_bytes, index.bytes().size() + 100);
  index.boundaries[90'000] = 89'998;
  EXPECT_EQ(error_of(index, 6 * kSequences + 8),
            "t.idx: document boundary 90000: expected 89999 or more, found 89998");
  index.pointers[99'999] = 6 * kSequences;
  EXPECT_EQ(error_of(index, 6 * kSequences),
            "t.idx: sequence 99999: expected 6 bytes at byte 600006 of t.bin, found its end at "
            "byte 600006");
}

TEST(Megatron, LimitsTheNumberOfRuns) {
  MegatronIndex index;
  for (std::size_t s = 0; s < kMostExtents; ++s) {
    index.lengths.push_back(1);
    index.pointers.push_back(static_cast<std::int64_t>(4 * s));
  }
  index.boundaries = {0, kMostExtents};
  TokenFolder folder = pair_of(index, 4 * kMostExtents);
  EXPECT_EQ(folder.open("t.bin").extents.size(), kMostExtents);
  index.lengths.push_back(1);
  index.pointers.push_back(0);
  index.boundaries.back() = kMostExtents + 1;
  EXPECT_EQ(error_of(index, 4 * kMostExtents),
            "t.idx: sequence 65536: expected at most 65536 contiguous runs of sequences, found "
            "more; rewrite the data in the order of the index");
}

}  // namespace
}  // namespace lowtide::megatron_test

// Tests src/format/datatrove.cc.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/token_files.h"

namespace lowtide::datatrove_test {
namespace {

TokenFolder folder_of(const std::vector<std::uint64_t>& ends, std::uint64_t data_bytes) {
  TokenFolder folder;
  folder.write("t.ds", "", data_bytes);
  folder.write("t.ds.index", little_endian(ends));
  return folder;
}

std::string error_of(const std::vector<std::uint64_t>& ends, std::uint64_t data_bytes,
                     const TokenGiven& given = {}) {
  return folder_of(ends, data_bytes).error("t.ds", given);
}

TEST(Datatrove, IsOneRunWhicheverFileWasNamed) {
  TokenFolder folder = folder_of({3, 3, 10}, 20);
  for (const char* path : {"t.ds", "t.ds.index"}) {
    SCOPED_TRACE(path);
    const TokenLayout layout = folder.open(path);
    EXPECT_EQ(layout.format, "datatrove");
    EXPECT_EQ(layout.data_path, "t.ds");
    EXPECT_EQ(layout.dtype, DType::parse("<u2"));
    EXPECT_EQ(layout.tokens, 10u);
    EXPECT_EQ(layout.extents.size(), 1u);
    ASSERT_TRUE(layout.documents);
    EXPECT_EQ(layout.documents->path, "t.ds.index");
    EXPECT_EQ(layout.documents->documents, 3u);
    EXPECT_EQ(layout.documents->by, DocumentsBy::token_ends);
  }
}

TEST(Datatrove, HasTokensOfTwoOrFourBytes) {
  EXPECT_EQ(folder_of({10}, 40).open("t.ds").dtype, DType::parse("<u4"));
  EXPECT_EQ(error_of({10}, 30),
            "t.ds: expected 2 or 4 bytes for each of the 10 tokens of the index, found 30 bytes");
  EXPECT_EQ(error_of({10}, 41),
            "t.ds: expected 2 or 4 bytes for each of the 10 tokens of the index, found 41 bytes");
  EXPECT_EQ(error_of({}, 4),
            "t.ds: expected 2 or 4 bytes for each of the 0 tokens of the index, found 4 bytes");
  EXPECT_EQ(error_of({10}, 20, given_dtype("uint32")),
            "t.ds.index: dtype '<u4' was given, but the header says '<u2'");
}

TEST(Datatrove, WithoutAnIndexHasNoDocuments) {
  TokenFolder folder;
  folder.write("t.ds", "", 20);
  EXPECT_EQ(folder.open("t.ds").tokens, 10u);
  EXPECT_EQ(folder.open("t.ds", given_dtype("uint32")).tokens, 5u);
  EXPECT_FALSE(folder.open("t.ds").documents);
  folder.write("t.ds", "", 21);
  EXPECT_EQ(folder.error("t.ds"), "t.ds: expected a multiple of 2 bytes, found 21");
  folder.remove("t.ds");
  folder.write("t.ds.index", little_endian(std::vector<std::uint64_t>{1}));
  EXPECT_EQ(folder.error("t.ds.index"), "t.ds.index: expected the data in t.ds, found no file");
}

TEST(Datatrove, RefusesEndsThatDecrease) {
  EXPECT_EQ(error_of({3, 2, 10}, 20),
            "t.ds.index: document 1: expected an end at token 3 or later, found 2");
  TokenFolder folder = folder_of({}, 20);
  folder.write("t.ds.index", "1234567");
  EXPECT_EQ(folder.error("t.ds"), "t.ds.index: expected a multiple of 8 bytes, found 7");
}

TEST(Datatrove, ReadsALongIndexInSlices) {
  std::vector<std::uint64_t> ends(100'000);
  for (std::size_t i = 0; i < ends.size(); ++i) ends[i] = i / 2;
  TokenFolder folder = folder_of(ends, 2 * ends.back());
  EXPECT_EQ(folder.open("t.ds").documents->documents, 100'000u);
  EXPECT_LE(folder.most_read_bytes, 256u * 1024);
  ends[70'000] = 0;
  EXPECT_NE(folder_of(ends, 2 * ends.back()).error("t.ds").find("document 70000"),
            std::string::npos);
}

}  // namespace
}  // namespace lowtide::datatrove_test

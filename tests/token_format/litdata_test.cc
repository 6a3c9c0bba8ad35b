// Tests src/token_format/litdata.cc.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/mds_files.h"

namespace lowtide::litdata_test {
namespace {

std::string chunk_of(const std::vector<std::size_t>& lengths) {
  std::vector<std::string> items;
  for (const std::size_t length : lengths) items.emplace_back(2 * length, 'a');
  return tabled(items, "");
}

std::string error_of(const std::string& bytes) {
  TokenFolder folder;
  folder.write("c.bin", bytes);
  return folder.error("c.bin", {.dtype = DType::parse("uint16"), .format = "litdata"});
}

TEST(LitData, IsOneExtentPerChunk) {
  TokenFolder folder;
  folder.write("d/chunk-0-0.bin", chunk_of({3, 0, 5}));
  folder.write("d/index.json",
               litdata_index({litdata_entry("chunk-0-0.bin", 36, 3, "8")}, "no_header_numpy:5"));
  const TokenLayout layout = folder.open("d/chunk-0-0.bin");
  EXPECT_EQ(layout.format, "litdata");
  EXPECT_EQ(layout.dtype, DType::parse("<u2"));
  EXPECT_EQ(layout.tokens, 8u);
  ASSERT_EQ(layout.extents.size(), 1u);
  EXPECT_EQ(layout.extents[0].offset_bytes, 20u);
  ASSERT_TRUE(layout.documents);
  EXPECT_EQ(layout.documents->by, DocumentsBy::byte_offsets);
  EXPECT_EQ(layout.documents->path, "d/chunk-0-0.bin");
  EXPECT_EQ(layout.documents->documents, 3u);
  EXPECT_EQ(layout.documents->documents_offset_bytes, 4u);
}

TEST(LitData, SaysThatItsIndexIsMissing) {
  TokenFolder folder;
  folder.write("d/chunk-0-0.bin", chunk_of({3, 5}));
  EXPECT_EQ(
      folder.error("d/chunk-0-0.bin"),
      "d/chunk-0-0.bin: expected an index.json beside this LitData chunk, found none: it "
      "contains the type of the tokens and the order of the chunks. To read the chunk without "
      "it, give the dtype");
  EXPECT_EQ(folder.open("d/chunk-0-0.bin", given_dtype("uint16")).tokens, 8u);
  EXPECT_EQ(folder.open("d/chunk-0-0.bin", given_dtype("uint16")).format, "litdata");
}

TEST(LitData, RefusesTablesThatLie) {
  const std::string chunk = chunk_of({3, 4, 5});
  const auto with_word = [&](std::size_t number, std::uint32_t word) {
    std::string bytes = chunk;
    bytes.replace(4 * number, 4, little_endian(word));
    return bytes;
  };
  const auto size = static_cast<std::uint32_t>(chunk.size());
  EXPECT_NE(error_of(with_word(0, 0xffffffff)).find("expected a table of 17179869188 bytes"),
            std::string::npos);
  EXPECT_NE(error_of(with_word(0, 2)).find("expected the end of the table, 16, found 20"),
            std::string::npos);
  EXPECT_NE(error_of(with_word(2, 25)).find("a whole number of tokens of 2 bytes after byte 20"),
            std::string::npos);
  EXPECT_NE(error_of(with_word(3, 22)).find("offset 2 (at byte 12): expected 26 or more, found 22"),
            std::string::npos);
  EXPECT_NE(error_of(with_word(3, size + 2)).find("expected at most the size"), std::string::npos);
  EXPECT_NE(error_of(with_word(4, size - 2)).find("expected the size"), std::string::npos);
  for (std::size_t cut = 1; cut < chunk.size(); ++cut) {
    EXPECT_EQ(error_of(chunk.substr(0, cut)).find("c.bin: "), 0u) << cut;
  }
}

TEST(LitData, ReadsALongTableInSlices) {
  TokenFolder folder;
  folder.write("c.bin", chunk_of(std::vector<std::size_t>(200'000, 1)));
  EXPECT_EQ(folder.open("c.bin", given_dtype("uint16")).documents->documents, 200'000u);
  EXPECT_LE(folder.most_read_bytes, 256u * 1024);
}

TEST(LitData, IsNotSeenInOtherFiles) {
  TokenFolder folder;
  folder.write("a.bin", little_endian(std::vector<std::uint32_t>{3, 20, 26, 34, 45, 1, 2, 3, 4}));
  EXPECT_EQ(folder.open("a.bin", given_dtype("uint16")).format, "nanogpt");
}

}  // namespace
}  // namespace lowtide::litdata_test

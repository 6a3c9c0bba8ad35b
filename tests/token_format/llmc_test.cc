#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/token_files.h"

namespace lowtide::llmc_test {
namespace {

constexpr std::size_t kHeaderBytes = 1024;

std::string header_of(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::string bytes = little_endian(std::vector<std::int32_t>{magic, version, count});
  bytes.resize(kHeaderBytes);
  return bytes;
}

std::string error_of(const std::string& bytes, const TokenGiven& given = {}) {
  TokenFolder folder;
  folder.write("t.bin", bytes);
  return folder.error("t.bin", given);
}

TEST(Llmc, ReadsUint16TokensOfGpt2) {
  TokenFolder folder;
  folder.write("t.bin", header_of(20240520, 1, 5) + std::string(10, '\1'));
  const TokenLayout layout = folder.open("t.bin");
  EXPECT_EQ(layout.format, "llmc");
  EXPECT_EQ(layout.data_path, "t.bin");
  EXPECT_EQ(layout.dtype, DType::parse("<u2"));
  EXPECT_EQ(layout.tokens, 5u);
  ASSERT_EQ(layout.extents.size(), 1u);
  EXPECT_EQ(layout.extents[0].offset_bytes, 1024u);
  EXPECT_EQ(layout.extents[0].tokens, 5u);
  EXPECT_FALSE(layout.documents);
}

TEST(Llmc, ReadsUint32TokensOfLlama3) {
  TokenFolder folder;
  folder.write("t.bin", header_of(20240801, 7, 5) + std::string(20, '\1'));
  const TokenLayout layout = folder.open("t.bin", given_format("llmc"));
  EXPECT_EQ(layout.dtype, DType::parse("<u4"));
  EXPECT_EQ(layout.tokens, 5u);
}

TEST(Llmc, ReadsTwelveBytesOnly) {
  TokenFolder folder;
  folder.write("t.bin", header_of(20240520, 1, 5) + std::string(10, '\1'));
  (void)folder.open("t.bin");
  EXPECT_EQ(folder.read_bytes, 12u);
}

TEST(Llmc, ReadsTheLargestCount) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  TokenFolder folder;
  folder.write("t.bin", header_of(20240801, 7, kMost), 1024 + 4 * std::uint64_t{kMost});
  EXPECT_EQ(folder.open("t.bin").tokens, std::uint64_t{kMost});
}

TEST(Llmc, HasNoRunWithoutTokens) {
  TokenFolder folder;
  folder.write("t.bin", header_of(20240520, 1, 0));
  const TokenLayout layout = folder.open("t.bin");
  EXPECT_EQ(layout.tokens, 0u);
  EXPECT_TRUE(layout.extents.empty());
}

TEST(Llmc, RefusesTheVersionOfTheOtherMagic) {
  EXPECT_EQ(error_of(header_of(20240520, 7, 0)),
            "t.bin: expected version 1 with the llm.c magic 20240520, found 7");
  EXPECT_EQ(error_of(header_of(20240801, 1, 0)),
            "t.bin: expected version 7 with the llm.c magic 20240801, found 1");
}

TEST(Llmc, RefusesANegativeCount) {
  EXPECT_EQ(error_of(header_of(20240520, 1, -5)),
            "t.bin: expected 0 tokens or more in the llm.c header, found -5");
}

TEST(Llmc, RefusesAFileThatIsNotAsLongAsTheCountSays) {
  const std::string header = header_of(20240520, 1, 5);
  for (const std::size_t data_bytes : {0, 9, 11, 12, 20}) {
    EXPECT_EQ(error_of(header + std::string(data_bytes, '\1')),
              "t.bin: expected 1024 + 2 * 5 = 1034 bytes according to the count in the llm.c "
              "header, found " +
                  std::to_string(1024 + data_bytes));
  }
  EXPECT_EQ(error_of(header_of(20240801, 7, std::numeric_limits<std::int32_t>::max())),
            "t.bin: expected 1024 + 4 * 2147483647 = 8589935612 bytes according to the count in "
            "the llm.c "
            "header, found 1024");
}

TEST(Llmc, RefusesATruncatedHeader) {
  for (const std::size_t bytes : {4, 11, 12, 1023}) {
    EXPECT_EQ(
        error_of(header_of(20240520, 1, 0).substr(0, bytes)),
        "t.bin: expected an llm.c header of 1024 bytes, found a file of " + std::to_string(bytes));
  }
  EXPECT_EQ(error_of("abc", given_format("llmc")),
            "t.bin: expected the llm.c magic 20240520 or 20240801, found a file too short for it");
}

TEST(Llmc, RefusesAnEvaluationFileByName) {
  const std::string text =
      "t.bin: expected tokens, found an llm.c evaluation file (magic 20240522), which holds "
      "questions and their answers";
  EXPECT_EQ(error_of(header_of(20240522, 1, 3)), text);
  EXPECT_EQ(error_of(header_of(20240522, 1, 3), given_format("llmc")), text);
}

TEST(Llmc, RefusesADtypeThatDiffersFromTheMagic) {
  const std::string bytes = header_of(20240520, 1, 2) + std::string(4, '\1');
  EXPECT_EQ(error_of(bytes, given_dtype("uint16")), "no error, but llmc");
  EXPECT_EQ(error_of(bytes, given_dtype("uint32")),
            "t.bin: dtype '<u4' was given, but the header says '<u2'");
}

}  // namespace
}  // namespace lowtide::llmc_test

#include "token_format/tokens.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "format/descr.h"
#include "support/npy_file.h"
#include "support/thrown.h"
#include "support/token_files.h"

namespace lowtide::tokens_test {
namespace {

using Words = std::vector<std::uint16_t>;

const std::string kTokens = little_endian(Words{11, 500, 3, 50256, 7, 9});

std::string format_of(const std::string& path, const std::string& bytes) {
  TokenFolder folder;
  folder.write(path, bytes);
  return folder.open(path).format;
}

std::string error_of(const std::string& path, const std::string& bytes,
                     const TokenGiven& given = {}) {
  TokenFolder folder;
  folder.write(path, bytes);
  return folder.error(path, given);
}

std::string word_error(const std::string& word) {
  TokenFolder folder;
  folder.write("t.bin", kTokens);
  return thrown<std::invalid_argument>([&] { (void)folder.open("t.bin", given_format(word)); });
}

MegatronIndex small_index() {
  return {.lengths = {2, 4}, .pointers = {0, 4}, .boundaries = {0, 1, 2}};
}

std::string llmc_bytes() {
  std::string bytes = little_endian(std::vector<std::int32_t>{20240520, 1, 6});
  bytes.resize(1024);
  return bytes + kTokens;
}

TEST(Tokens, AreUint16FromTheFirstByteWhereThereIsNoHeader) {
  TokenFolder folder;
  folder.write("t.bin", kTokens);
  const TokenLayout layout = folder.open("t.bin");
  EXPECT_EQ(layout.format, "nanogpt");
  EXPECT_EQ(layout.data_path, "t.bin");
  EXPECT_EQ(layout.dtype, DType::parse("uint16"));
  EXPECT_EQ(layout.tokens, 6u);
  ASSERT_EQ(layout.extents.size(), 1u);
  EXPECT_EQ(layout.extents[0].offset_bytes, 0u);
  EXPECT_EQ(layout.extents[0].tokens, 6u);
  EXPECT_FALSE(layout.documents);
}

TEST(Tokens, AreTakenAsOlmoUnderANpyNameWithoutTheMagic) {
  EXPECT_EQ(format_of("t.npy", kTokens), "olmo");
  EXPECT_EQ(format_of("t.npy.bin", kTokens), "nanogpt");
  EXPECT_EQ(format_of("t", kTokens), "nanogpt");
}

TEST(Tokens, AreKnownByTheirBytesWhateverTheirName) {
  for (const char* path : {"t.bin", "t.npy", "t", "t.idx"}) {
    EXPECT_EQ(format_of(path, npy_text("<u2", {6}, kTokens)), "npy") << path;
    EXPECT_EQ(format_of(path, llmc_bytes()), "llmc") << path;
  }
}

TEST(Tokens, OfARealNpyLieBehindItsHeader) {
  const std::string bytes = npy_text("<u2", {6}, kTokens);
  TokenFolder folder;
  folder.write("t.npy", bytes);
  const TokenLayout layout = folder.open("t.npy", given_dtype("<u2"));
  EXPECT_EQ(layout.tokens, 6u);
  ASSERT_EQ(layout.extents.size(), 1u);
  EXPECT_EQ(layout.extents[0].offset_bytes, bytes.size() - kTokens.size());
  EXPECT_EQ(error_of("t.npy", bytes, given_dtype("<u4")),
            "t.npy: dtype '<u4' was given, but the header says '<u2'");
}

TEST(Tokens, OfANpyMustBeIntegersOnOneAxis) {
  EXPECT_EQ(
      error_of("t.npy", npy_text("<f4", {3}, kTokens)),
      "t.npy: expected tokens of an integer type such as uint16 or uint32, found dtype '<f4'");
  EXPECT_EQ(
      error_of("t.npy", npy_text("|b1", {12}, kTokens)),
      "t.npy: expected tokens of an integer type such as uint16 or uint32, found dtype '|b1'");
  EXPECT_EQ(error_of("t.npy", npy_text(">u2", {6}, kTokens)),
            "t.npy: expected tokens of a little-endian type such as uint16 or uint32, found dtype "
            "'>u2'");
  EXPECT_EQ(error_of("t.npy", npy_text("<u2", {2, 3}, kTokens)),
            "t.npy: expected tokens on one axis, found shape (2, 3)");
  EXPECT_EQ(error_of("t.npy", npy_text("<u2", {}, kTokens)),
            "t.npy: expected tokens on one axis, found shape ()");
  EXPECT_NE(error_of("t.npy", npy_text("|O", {6}, kTokens)).find("which are never unpickled"),
            std::string::npos);
}

TEST(Tokens, OfATruncatedNpyAreRefused) {
  const std::string bytes = npy_text("<u2", {6}, kTokens);
  EXPECT_NE(error_of("t.npy", bytes.substr(0, bytes.size() - 1))
                .find("t.npy: expected 12 bytes of data at byte 128 for shape (6,)"),
            std::string::npos);
  EXPECT_EQ(error_of("t.npy", bytes.substr(0, 40)),
            "t.npy: expected a .npy header up to byte 128, found the end at byte 40");
  EXPECT_EQ(error_of("t.npy", bytes.substr(0, 9)),
            "t.npy: expected a .npy header up to byte 10, found the end at byte 9");
}

TEST(Tokens, OfANpyWithoutElementsAreNone) {
  TokenFolder folder;
  folder.write("t.npy", npy_text("<u2", {0}, ""));
  const TokenLayout layout = folder.open("t.npy");
  EXPECT_EQ(layout.tokens, 0u);
  EXPECT_TRUE(layout.extents.empty());
}

TEST(Tokens, HaveTheGivenDtypeWhereThereIsNoHeader) {
  TokenFolder folder;
  folder.write("t.bin", std::string(24, '\1'));
  for (const auto& [dtype, tokens] :
       {std::pair{"uint8", 24u}, {"int8", 24u}, {"int16", 12u}, {"uint32", 6u}, {"int64", 3u}}) {
    const TokenLayout layout = folder.open("t.bin", given_dtype(dtype));
    EXPECT_EQ(layout.dtype, DType::parse(dtype));
    EXPECT_EQ(layout.tokens, tokens) << dtype;
  }
}

TEST(Tokens, OfGivenTypesThatAreNoTokensAreRefused) {
  const auto refused = [](const std::string& descr) {
    const TokenGiven given{.dtype = parse_descr(descr), .format = std::nullopt};
    return error_of("t.bin", kTokens, given);
  };
  for (const char* descr : {"<f4", "|b1", "|S4", "<U1", "<M8[ns]", "|V2", "[('x', '<u2')]"}) {
    EXPECT_TRUE(refused(descr).starts_with("t.bin: expected tokens of an integer type"))
        << refused(descr);
  }
  EXPECT_TRUE(refused("('<u2', (3,))").starts_with("t.bin: expected tokens of an integer type"));
  EXPECT_EQ(refused(">u4"),
            "t.bin: expected tokens of a little-endian type such as uint16 or uint32, found dtype "
            "'>u4'");
}

TEST(Tokens, MustFillTheFile) {
  EXPECT_EQ(error_of("t.bin", std::string(7, '\1')),
            "t.bin: expected a multiple of 2 bytes for tokens of dtype '<u2', found 7 bytes; give "
            "another dtype");
  EXPECT_EQ(error_of("t.npy", std::string(10, '\1'), given_dtype("<u8")),
            "t.npy: expected a multiple of 8 bytes for tokens of dtype '<u8', found 10 bytes; give "
            "another dtype");
}

TEST(Tokens, OfAnEmptyFileAreRefused) {
  EXPECT_EQ(error_of("t.bin", ""), "t.bin: expected data, found an empty file");
  EXPECT_EQ(error_of("t.bin", "", given_format("megatron")),
            "t.bin: expected data, found an empty file");
}

TEST(Tokens, OfFilesShorterThanAnyMagicAreRead) {
  EXPECT_EQ(format_of("t.bin", "ab"), "nanogpt");
  EXPECT_EQ(error_of("t.bin", "a", given_dtype("uint8")), "no error, but nanogpt");
}

TEST(Tokens, ThatLookLikeUint32AreRefusedWithTheFix) {
  const std::string text =
      ": expected uint16 tokens, found what looks like uint32 (every second 16-bit word at the "
      "start is below 8); give the dtype explicitly, uint32 or uint16";
  const std::string bytes = little_endian(std::vector<std::uint32_t>{7, 128255, 50256, 0, 3});
  EXPECT_EQ(error_of("t.bin", bytes), "t.bin" + text);
  EXPECT_EQ(error_of("t.npy", bytes), "t.npy" + text);
  EXPECT_EQ(error_of("t.bin", bytes, given_format("nanogpt")), "t.bin" + text);
  EXPECT_EQ(error_of("t.bin", bytes, given_dtype("uint32")), "no error, but nanogpt");
  EXPECT_EQ(error_of("t.bin", bytes, given_dtype("uint16")), "no error, but nanogpt");
}

TEST(Tokens, ThatAreAllNextToZeroAreNoEvidenceOfUint32) {
  EXPECT_EQ(format_of("t.bin", std::string(400, '\0')), "nanogpt");
  EXPECT_EQ(format_of("t.bin", little_endian(Words{7, 0, 1, 7})), "nanogpt");
  EXPECT_NE(error_of("t.bin", little_endian(Words{8, 7})).find("uint32"), std::string::npos);
  EXPECT_EQ(format_of("t.bin", little_endian(Words{8, 8})), "nanogpt");
}

TEST(Tokens, ThatCannotBeUint32ByTheirSizeStayUint16) {
  EXPECT_EQ(format_of("t.bin", little_endian(Words{500})), "nanogpt");
  EXPECT_EQ(format_of("t.bin", little_endian(Words{500, 1, 600})), "nanogpt");
}

TEST(Tokens, AreSampledInTheFirst64KiBOnly) {
  TokenFolder folder;
  std::string bytes = little_endian(std::vector<std::uint32_t>(16 * 1024, 70000));
  folder.write("t.bin", bytes + little_endian(Words(64, 9)));
  EXPECT_NE(folder.error("t.bin").find("uint32"), std::string::npos);
  EXPECT_EQ(folder.most_read_bytes, 64u * 1024);
  bytes.replace(bytes.size() - 2, 2, little_endian(Words{8}));
  folder.write("t.bin", bytes);
  EXPECT_EQ(folder.open("t.bin").format, "nanogpt");
}

TEST(Tokens, OfAGivenDtypeAreNotSampled) {
  TokenFolder folder;
  folder.write("t.bin", std::string(200000, '\1'));
  (void)folder.open("t.bin", given_dtype("uint16"));
  EXPECT_LE(folder.read_bytes, 12u);
}

TEST(Tokens, MayBeMoreThan32BitsCount) {
  TokenFolder folder;
  folder.write("t.bin", kTokens, std::uint64_t{1} << 42);
  const TokenLayout layout = folder.open("t.bin");
  EXPECT_EQ(layout.tokens, std::uint64_t{1} << 41);
  EXPECT_EQ(layout.extents.at(0).tokens, layout.tokens);
}

TEST(Tokens, AreLimitedToWhatOffsetsCanCount) {
  TokenFolder folder;
  folder.write("t.bin", kTokens, std::uint64_t{1} << 60);
  EXPECT_EQ(folder.error("t.bin", given_dtype("uint8")),
            "t.bin: expected fewer than 2^60 tokens, found more");
  EXPECT_EQ(folder.open("t.bin").tokens, std::uint64_t{1} << 59);
}

TEST(TokensFormat, IsChosenByItsWord) {
  TokenFolder folder;
  folder.write("t.npy", kTokens);
  EXPECT_EQ(folder.open("t.npy", given_format("nanogpt")).format, "nanogpt");
  EXPECT_EQ(folder.open("t.npy", given_format("raw")).format, "nanogpt");
  folder.write("t.bin", kTokens);
  EXPECT_EQ(folder.open("t.bin", given_format("olmo")).format, "olmo");
  folder.write("t.idx", small_index().bytes());
  EXPECT_EQ(folder.open("t.bin").format, "megatron");
  EXPECT_EQ(folder.open("t.bin", given_format("nanogpt")).format, "nanogpt");
}

TEST(TokensFormat, RefusesAWordThatIsNoneAndListsThoseThatAre) {
  const std::string known =
      "format: expected one of megatron, llmc, npy, mds, litdata, datatrove, olmo, nanogpt, raw "
      "(an "
      "alias of nanogpt), found ";
  for (const char* word : {"MDS", "parquet", "", "NanoGPT"}) {
    EXPECT_EQ(word_error(word), known + "'" + word + "'");
  }
}

TEST(TokensFormat, RefusesBytesThatDoNotAgreeWithItsWord) {
  EXPECT_EQ(error_of("t.bin", kTokens, given_format("llmc")),
            "t.bin: expected the llm.c magic 20240520 or 20240801, found 32768011");
  EXPECT_EQ(error_of("t.npy", kTokens, given_format("npy")),
            "t.npy: expected the .npy magic '\\x93NUMPY', found '\\x0b\\x00\\xf4\\x01\\x03\\x00'");
  EXPECT_EQ(error_of("t.bin", kTokens, given_format("megatron")),
            "t.bin: expected the Megatron index in t.idx, found no file");
}

TEST(TokensFormat, ReadsNoHeaderAsTokens) {
  EXPECT_EQ(error_of("t.bin", llmc_bytes(), given_format("nanogpt")),
            "t.bin: expected tokens without a header for format 'nanogpt', found the header of "
            "'llmc'");
  EXPECT_EQ(error_of("t.npy", npy_text("<u2", {6}, kTokens), given_format("olmo")),
            "t.npy: expected tokens without a header for format 'olmo', found the header of 'npy'");
  EXPECT_EQ(error_of("t.idx", small_index().bytes(), given_format("raw")),
            "t.idx: expected tokens without a header for format 'nanogpt', found the header of "
            "'megatron'");
}

TEST(TokensFormat, PassesOnWhatTheReaderThrows) {
  const TokenFile broken{"t.bin", 10,
                         [](std::uint64_t, std::span<std::byte>) { throw std::range_error("io"); }};
  const OpenBeside nothing = [](const std::string&) { return std::nullopt; };
  EXPECT_THROW((void)open_token_layout(broken, nothing, {}), std::range_error);
}

}  // namespace
}  // namespace lowtide::tokens_test

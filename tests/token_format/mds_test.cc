// Tests src/token_format/mds.cc, mds_columns.cc and mds_samples.cc.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/mds_files.h"

namespace lowtide::mds_test {
namespace {

using Values = std::vector<std::int32_t>;

Values values(std::size_t count) {
  Values all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = static_cast<std::int32_t>(1000 * count + i);
  return all;
}

std::string shard_of(const std::vector<std::size_t>& lengths) {
  std::vector<std::string> samples;
  for (const std::size_t length : lengths) samples.push_back(mds_sample(mds_array(values(length))));
  return tabled(samples, only_tokens("ndarray:int32"));
}

// The lengths of the documents, after a check that their tokens are where the layout says.
std::vector<std::size_t> lengths_in(const TokenLayout& layout, const std::string& bytes) {
  std::vector<std::size_t> lengths;
  for (std::uint64_t d = 0; d < layout.records->documents(); ++d) {
    const std::uint64_t count = layout.records->first_token(d + 1) - layout.records->first_token(d);
    const std::string expected = little_endian(values(count));
    EXPECT_EQ(bytes.substr((*layout.records)[d].offset_bytes, expected.size()), expected) << d;
    lengths.push_back(count);
  }
  return lengths;
}

TokenLayout open(const std::string& bytes, const TokenGiven& given = {}) {
  TokenFolder folder;
  folder.write("s.mds", bytes);
  return folder.open("s.mds", given);
}

std::string error_of(const std::string& bytes, const TokenGiven& given = {}) {
  TokenFolder folder;
  folder.write("s.mds", bytes);
  return folder.error("s.mds", given);
}

TokenGiven thorough() {
  TokenGiven given;
  given.every_header = true;
  return given;
}

TEST(Mds, HasADocumentPerSample) {
  const std::vector<std::size_t> lengths{3, 255, 256, 1, 300, 65'535, 65'536, 2};
  const std::string bytes = shard_of(lengths);
  for (const TokenGiven& given : {TokenGiven{}, thorough()}) {
    const TokenLayout layout = open(bytes, given);
    EXPECT_EQ(layout.format, "mds");
    EXPECT_EQ(layout.dtype, DType::parse("<i4"));
    EXPECT_TRUE(layout.extents.empty());
    EXPECT_EQ(layout.documents->documents, lengths.size());
    EXPECT_EQ(layout.documents->by, DocumentsBy::records);
    EXPECT_EQ(lengths_in(layout, bytes), lengths);
    EXPECT_FALSE(layout.records->regular());
    EXPECT_EQ(layout.records->held_bytes(), 8 * lengths.size());
  }
}

TEST(Mds, IsRecognisedByItsBytes) {
  TokenFolder folder;
  folder.write("anything.bin", shard_of({3, 4}));
  EXPECT_EQ(folder.open("anything.bin").format, "mds");
}

TEST(Mds, OfSamplesOfOneLengthHoldsNothingPerSample) {
  const std::vector<std::size_t> lengths(5000, 100);
  const TokenLayout layout = open(shard_of(lengths));
  EXPECT_EQ(lengths_in(layout, shard_of(lengths)), lengths);
  EXPECT_TRUE(layout.records->regular());
  EXPECT_EQ(layout.records->held_bytes(), 0u);
}

TEST(Mds, ReadsOnlyTheTableWhereSizesSayEverything) {
  std::vector<std::size_t> lengths(3000, 1000);
  lengths[7] = 900;
  TokenFolder folder;
  const std::string bytes = shard_of(lengths);
  folder.write("s.mds", bytes);
  EXPECT_EQ(lengths_in(folder.open("s.mds"), bytes), lengths);
  EXPECT_LT(folder.read_bytes, 4 * 3000 + 3 * 4096u) << "of " << bytes.size();
  folder.read_bytes = 0;
  (void)folder.open("s.mds", thorough());
  EXPECT_GT(folder.read_bytes, bytes.size() / 2);
}

TEST(Mds, RefusesATableOfRecordsThatIsTooLarge) {
  TokenGiven given;
  given.most_record_bytes = 8 * 99;
  TokenFolder folder;
  std::vector<std::size_t> lengths(100, 5);
  folder.write("s.mds", shard_of(lengths));
  EXPECT_EQ(folder.open("s.mds", given).tokens, 500u) << "they take nothing";
  lengths[50] = 6;
  folder.write("s.mds", shard_of(lengths));
  EXPECT_NE(thrown<std::invalid_argument>([&] {
              (void)folder.open("s.mds", given);
            }).find("s.mds has 100 samples of different lengths"),
            std::string::npos);
}

TEST(Mds, HasTokensAmongOtherColumns) {
  const auto word = [](std::size_t size) {
    return little_endian(static_cast<std::uint32_t>(size));
  };
  std::vector<std::string> samples;
  const std::vector<std::size_t> lengths{4, 300, 1};
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::string id(i * 7, 'i'), tokens = mds_array(values(lengths[i])), url(3 - i, 'u');
    samples.push_back(word(id.size()) + word(tokens.size()) + word(url.size()) + id + "12345678" +
                      tokens + url);
  }
  const std::string columns =
      mds_columns(R"(["id", "label", "tokens", "url"])",
                  R"(["str", "int", "ndarray:int32", "str"])", "[null, 8, null, null]");
  const std::string bytes = tabled(samples, columns);
  EXPECT_EQ(lengths_in(open(bytes), bytes), lengths);
  samples[1].replace(4, 4, word(1));
  EXPECT_NE(error_of(tabled(samples, columns)).find("as the sum of its size words, found"),
            std::string::npos);
}

TEST(Mds, HasTokensOfAFixedShape) {
  const std::vector<std::string> samples{little_endian(values(8)) + "x",
                                         little_endian(values(8)) + "y"};
  const std::string columns =
      mds_columns(R"(["tokens", "z"])", R"(["ndarray:int32:2,4", "uint8"])", "[32, 1]");
  const std::string bytes = tabled(samples, columns);
  EXPECT_EQ(lengths_in(open(bytes), bytes), (std::vector<std::size_t>{8, 8}));
  EXPECT_EQ(error_of(tabled({samples[0], samples[1] + "!"}, columns)),
            "s.mds: sample 1 (at byte " + std::to_string(16 + columns.size() + 33) +
                "): expected 33 bytes for its columns, found 34");
  for (const char* wrong : {"ndarray:int32:2,5", "ndarray:int32:0", "ndarray:int32:x",
                            "ndarray:int32:99999999999,99999999999"}) {
    EXPECT_EQ(error_of(tabled(samples, only_tokens(wrong, "32"))).find("s.mds: column 'tokens': "),
              0u)
        << wrong;
  }
}

TEST(Mds, OfBytesNeedsADtype) {
  const std::string bytes = tabled(
      {mds_sample(little_endian(values(5))), mds_sample(""), mds_sample(little_endian(values(2)))},
      only_tokens("bytes"));
  EXPECT_NE(error_of(bytes).find("give the dtype (llm-foundry wrote int64)"), std::string::npos);
  EXPECT_EQ(lengths_in(open(bytes, given_dtype("int32")), bytes),
            (std::vector<std::size_t>{5, 0, 2}));
  EXPECT_NE(error_of(bytes, given_dtype("int64")).find("a multiple of 8 bytes of tokens, found 20"),
            std::string::npos);
}

TEST(Mds, MayHaveTheTypeInEverySample) {
  const auto sample = [](char code, std::size_t length) {
    return mds_sample(std::string(1, code) + mds_array(values(length)));
  };
  const std::string bytes = tabled({sample(33, 3), sample(33, 9)}, only_tokens("ndarray"));
  EXPECT_EQ(lengths_in(open(bytes), bytes), (std::vector<std::size_t>{3, 9}));
  EXPECT_EQ(open(bytes).dtype, DType::parse("<i4"));
  EXPECT_NE(error_of(tabled({sample(33, 3), sample(32, 9)}, only_tokens("ndarray")))
                .find("expected tokens of dtype '<i4', as in the samples before, found '<u4'"),
            std::string::npos);
  EXPECT_NE(error_of(tabled({sample(34, 3)}, only_tokens("ndarray")))
                .find("expected the type code of an integer, found 34"),
            std::string::npos);
  EXPECT_NE(error_of(bytes, given_dtype("int64")).find("was given, but the header says"),
            std::string::npos);
}

TEST(Mds, NamesItsColumnsIfNoneCanBeMeant) {
  const auto error = [](const std::string& names, const std::string& encodings) {
    return error_of(tabled({}, mds_columns(names, encodings, "[null, null]")));
  };
  EXPECT_EQ(error(R"(["a", "b"])", R"(["bytes", "ndarray:int32"])"),
            "s.mds: expected a key, a column named 'tokens', or one column of encoding ndarray or "
            "bytes, found the columns 'a' ('bytes'), 'b' ('ndarray:int32')");
  EXPECT_EQ(error(R"(["a", "tokens"])", R"(["ndarray:int32", "str"])"),
            "s.mds: column 'tokens': expected the encoding ndarray or bytes for tokens, found "
            "'str'");
  EXPECT_NE(error(R"(["a", "tokens"])", R"(["ndarray:int32", "pkl"])").find("Python pickles"),
            std::string::npos);
  EXPECT_NE(error(R"(["a", "tokens"])", R"(["str", "ndarray:float32"])").find("integers"),
            std::string::npos);
  EXPECT_NE(error(R"(["a"])", R"(["bytes", "str"])").find("expected equally many"),
            std::string::npos);
}

TEST(Mds, HasTheColumnThatAKeyNames) {
  const std::string columns =
      mds_columns(R"(["a", "tokens"])", R"(["ndarray:int32", "ndarray:uint16"])", "[null, null]");
  const std::string a = mds_array(values(300)), b = mds_array(std::vector<std::uint16_t>{1, 2});
  const auto word = [](const std::string& column) {
    return little_endian(static_cast<std::uint32_t>(column.size()));
  };
  const std::string bytes = tabled({word(a) + word(b) + a + b}, columns);
  TokenGiven given;
  EXPECT_EQ(open(bytes, given).key, "tokens");
  EXPECT_EQ(open(bytes, given).tokens, 2u);
  given.key = "a";
  EXPECT_EQ(open(bytes, given).key, "a");
  EXPECT_EQ(lengths_in(open(bytes, given), bytes), (std::vector<std::size_t>{300}));
  given.key = "x";
  EXPECT_EQ(error_of(bytes, given),
            "s.mds: expected a column named 'x', found the columns 'a' ('ndarray:int32'), 'tokens' "
            "('ndarray:uint16')");
  TokenFolder folder;
  folder.write("t.bin", "abcd");
  EXPECT_EQ(
      thrown<std::invalid_argument>([&] { (void)folder.open("t.bin", given); }),
      "t.bin: key 'x' was given, but files in format 'nanogpt' have no columns; leave the key "
      "out");
}

TEST(Mds, TakesTheOnlyColumnThatCanHoldTokens) {
  const std::string columns =
      mds_columns(R"(["ids", "text"])", R"(["ndarray:int32", "int"])", "[null, 8]");
  const std::string bytes = tabled({mds_sample(mds_array(values(3))) + "12345678"}, columns);
  EXPECT_EQ(lengths_in(open(bytes), bytes), (std::vector<std::size_t>{3}));
}

TEST(Mds, RefusesHeadersThatLie) {
  const auto first = [](const std::string& column) {
    return error_of(tabled({mds_sample(column)}, only_tokens("ndarray:int32")));
  };
  std::string lies = mds_array(values(3));
  lies[1] = 4;
  EXPECT_NE(first(lies).find("expected 4 tokens, as its shape says, found 3"), std::string::npos);
  lies = mds_array(values(3));
  lies[0] = 2 << 2;
  EXPECT_NE(first(lies).find("expected an ndarray with one axis, found 2 axes"), std::string::npos);
  EXPECT_NE(first("").find("the header of an ndarray, found only 0 bytes"), std::string::npos);
  EXPECT_NE(first(std::string("\x07\x01\0\0", 4)).find("the header of an ndarray"),
            std::string::npos);
  // In the middle, only a thorough look at the headers finds it.
  std::string shard = shard_of({3, 3, 3});
  const std::size_t second = shard.rfind(mds_array(values(3)), shard.size() - 20);
  shard[second + 1] = 9;
  EXPECT_EQ(open(shard).tokens, 9u);
  EXPECT_NE(error_of(shard, thorough()).find("sample 1"), std::string::npos);
  // Bytes that no ndarray has are found without.
  EXPECT_NE(error_of(tabled({mds_sample(mds_array(values(3))), mds_sample("123"),
                             mds_sample(mds_array(values(3)))},
                            only_tokens("ndarray:int32")))
                .find("sample 1"),
            std::string::npos);
  std::string size = tabled({mds_sample(mds_array(values(3)))}, only_tokens("ndarray:int32"));
  size[12 + only_tokens("ndarray:int32").size()] = 13;
  EXPECT_NE(error_of(size).find("as the sum of its size words, found 13"), std::string::npos);
}

TEST(Mds, RefusesTablesThatLie) {
  const std::string shard = shard_of({3, 4, 5});
  const auto with_word = [&](std::size_t number, std::uint32_t word) {
    std::string bytes = shard;
    bytes.replace(4 * number, 4, little_endian(word));
    return bytes;
  };
  const auto size = static_cast<std::uint32_t>(shard.size());
  EXPECT_NE(error_of(with_word(0, 0xffffffff)).find("expected a table of 17179869188 bytes"),
            std::string::npos);
  EXPECT_NE(error_of(with_word(1, 8)).find("offset 0 (at byte 4): expected"), std::string::npos);
  EXPECT_NE(error_of(with_word(1, size + 1)).find("offset 0 (at byte 4): expected"),
            std::string::npos);
  EXPECT_NE(error_of(with_word(2, size + 1)).find("offset 1 (at byte 8): expected at most"),
            std::string::npos);
  EXPECT_NE(error_of(with_word(3, 20)).find("or more, found 20"), std::string::npos);
  EXPECT_NE(error_of(with_word(4, size - 1)).find("sample 2"), std::string::npos);
  EXPECT_NE(error_of(shard.substr(0, size - 1)).find("expected at most the size"),
            std::string::npos);
  EXPECT_NE(error_of(shard + "!")
                .find("offset 3 (at byte 16): expected the size " + std::to_string(size + 1) +
                      ", found " + std::to_string(size)),
            std::string::npos);
  for (std::size_t cut = 1; cut < shard.size(); ++cut) {
    EXPECT_EQ(error_of(shard.substr(0, cut)).find("s.mds: "), 0u) << cut;
  }
}

TEST(Mds, RefusesJsonThatIsNotThat) {
  for (const std::string& json :
       {std::string("{"), std::string("[]"), std::string("{}"), std::string(100, '['),
        only_tokens("ndarray:int32") + "x", only_tokens("ndarray:int32", "0"),
        only_tokens("ndarray:int32", "-1"), only_tokens("ndarray:int32", "12")}) {
    EXPECT_EQ(error_of(tabled({}, json)).find("s.mds: "), 0u) << json;
  }
  EXPECT_NE(error_of(tabled({}, std::string((1 << 20) + 1, ' '))).find("at most 1 MiB of JSON"),
            std::string::npos);
}

TEST(Mds, MayBeEmpty) {
  const TokenLayout layout = open(tabled({}, only_tokens("ndarray:int32")));
  EXPECT_EQ(layout.tokens, 0u);
  EXPECT_EQ(layout.documents->documents, 0u);
}

}  // namespace
}  // namespace lowtide::mds_test

#include "token_format/token_list.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/mds_files.h"

namespace lowtide::token_list_test {
namespace {

TokenFileList read(const std::string& json, const TokenGiven& given = {}) {
  TokenFolder folder;
  folder.write("d/index.json", json);
  return read_token_list(folder.find("d/index.json").value(), given);
}

std::string error_of(const std::string& json, const TokenGiven& given = {}) {
  return thrown<FormatError>([&] { return read(json, given).format; });
}

TEST(TokenList, IsRecognisedByItsName) {
  for (const char* path : {"index.json", "a/index.json", "s3://b/a/index.json"}) {
    EXPECT_TRUE(is_token_list(path)) << path;
  }
  for (const char* path : {"", "x.json", "aindex.json", "0.index.json", "index.json/x"}) {
    EXPECT_FALSE(is_token_list(path)) << path;
  }
}

TEST(TokenList, OfMdsHasTheShardsInTheirOrder) {
  const TokenFileList list = read(mds_index(
      {mds_entry("b/s.1.mds", 100, 7),
       mds_entry(
           "s.0.mds", 50, 3,
           R"(, "compression": "zstd:7", "zip_data": {"basename": "s.0.mds.zstd", "bytes": 9, "hashes": {}})")}));
  EXPECT_EQ(list.format, "mds");
  EXPECT_EQ(list.path, "d/index.json");
  EXPECT_FALSE(list.dtype);
  ASSERT_EQ(list.files.size(), 2u);
  EXPECT_EQ(list.files[0].name, "b/s.1.mds");
  EXPECT_EQ(list.files[0].file_bytes, 100u);
  EXPECT_EQ(list.files[0].documents, 7u);
  EXPECT_EQ(list.files[0].packed_name, "");
  EXPECT_EQ(list.files[1].packed_name, "s.0.mds.zstd");
  EXPECT_EQ(list.files[1].compression, "zstd:7");
  EXPECT_EQ(thrown<FormatError>([&] { refuse_packed(list, list.files[1]); }),
            "d/index.json: expected the file 's.0.mds' beside it, found only 's.0.mds.zstd' "
            "(compression 'zstd:7'); unpack every file first: zstd -d s.0.mds.zstd -o s.0.mds");
}

TEST(TokenList, OfLitDataHasTheType) {
  const TokenFileList list = read(litdata_index({litdata_entry("chunk-1-0.bin", 100, 7, "40"),
                                                 litdata_entry("chunk-0-0.bin", 50, 3, "null")}));
  EXPECT_EQ(list.format, "litdata");
  EXPECT_EQ(list.dtype, DType::parse("<u2"));
  ASSERT_EQ(list.files.size(), 2u);
  EXPECT_EQ(list.files[0].name, "chunk-1-0.bin");
  EXPECT_EQ(list.files[0].tokens, 40u);
  EXPECT_EQ(list.files[1].tokens, std::nullopt);
  EXPECT_EQ(given_by(list, {}).format, "litdata");
  EXPECT_EQ(given_by(list, {}).dtype, DType::parse("<u2"));
  const std::vector<std::pair<const char*, const char*>> types{
      {"no_header_tensor:16", "<i4"}, {"no_header_tensor:18", "<i8"}, {"no_header_numpy:6", "<u4"}};
  for (const auto& [format, descr] : types) {
    EXPECT_EQ(read(litdata_index({litdata_entry("c", 1, 1, "1")}, format)).dtype,
              DType::parse(descr));
  }
}

TEST(TokenList, OfCompressedLitDataNamesWhatItUnpacksTo) {
  const std::string config =
      R"("compression": "zstd", "encryption": null, "item_loader": "TokensLoader")";
  const std::vector<std::string> entries{litdata_entry("chunk-0-0.zstd.bin", 1, 1, "1")};
  const TokenFileList list = read(litdata_index(entries, "no_header_tensor:20", config));
  EXPECT_EQ(list.files[0].name, "chunk-0-0.bin");
  EXPECT_EQ(list.files[0].packed_name, "chunk-0-0.zstd.bin");
}

TEST(TokenList, RefusesWhatLitDataCannotBeReadFrom) {
  const auto with = [](const std::string& format, const std::string& config) {
    return error_of(litdata_index({litdata_entry("c.bin", 1, 1, "1")}, format, config));
  };
  const std::string tokens = R"("item_loader": "TokensLoader")";
  EXPECT_NE(
      with("int", R"("item_loader": "PyTreeLoader")").find("TokensLoader, found 'PyTreeLoader'"),
      std::string::npos);
  EXPECT_NE(with("int", R"("x": 1)").find("TokensLoader, found 'none'"), std::string::npos);
  EXPECT_NE(with("no_header_tensor:20", tokens + R"(, "encryption": {"level": "chunk"})")
                .find("are encrypted"),
            std::string::npos);
  EXPECT_NE(with("no_header_tensor:1", tokens).find("found 'no_header_tensor:1'"),
            std::string::npos);
  EXPECT_NE(with("no_header_tensor:20\", \"int", tokens).find("expected one entry in data_format"),
            std::string::npos);
  EXPECT_NE(with("no_header_tensor:20", tokens + R"(, "compression": "zstd")")
                .find("ends in '.zstd.bin'"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"chunks": []})").find("'config'"), std::string::npos);
}

TEST(TokenList, RefusesNamesOutsideOfItsFolder) {
  for (const char* name : {"", "/etc/passwd", "..", "../a", "a/../b", "a/..", "./a", "a//b", "a/",
                           "a\\\\b", "a\\nb", "a\\u0000b"}) {
    EXPECT_NE(error_of(mds_index({mds_entry(name, 1, 1)})).find("d/index.json: expected"),
              std::string::npos)
        << name;
    EXPECT_EQ(error_of(litdata_index({litdata_entry(name, 1, 1, "1")})).find("d/index.json: "), 0u)
        << name;
  }
  EXPECT_EQ(read(mds_index({mds_entry("..a/b..", 1, 1)})).files[0].name, "..a/b..");
}

TEST(TokenList, RefusesTextsThatAreNoLists) {
  EXPECT_EQ(
      error_of("{}"),
      "d/index.json: expected the key 'shards' (mds) or 'chunks' (litdata), found neither; if "
      "it does not list the token files, pass their paths instead");
  for (const char* json :
       {"", "null", "[]", "{\"shards\": 1}", "{\"shards\": [1]}", "{\"shards\": [{}]}",
        "{\"shards\": []}", "{\"shards\": [], \"chunks\": []}",
        "{\"shards\": [], \"shards\": []}"}) {
    EXPECT_EQ(error_of(json).find("d/index.json: "), 0u) << json;
  }
  const std::string deep = "{\"x\": " + std::string(1'000'000, '[');
  EXPECT_NE(error_of(deep).find("at most 32 levels"), std::string::npos);
  EXPECT_NE(error_of(mds_index({R"({"version": 1, "format": "mds"})"})).find("version 2"),
            std::string::npos);
  EXPECT_NE(error_of(mds_index({R"({"version": 2, "format": "jsonl"})"})).find("format \"mds\""),
            std::string::npos);
  TokenFolder folder;
  folder.write("d/index.json", "{}", kMaxTokenListBytes + 1);
  EXPECT_NE(thrown<FormatError>([&] {
              (void)read_token_list(folder.find("d/index.json").value(), {});
            }).find("expected a list of at most 64 MiB"),
            std::string::npos);
}

TEST(TokenList, AgreesWithWhatWasGiven) {
  const std::string mds = mds_index({mds_entry("a", 1, 1)});
  EXPECT_EQ(read(mds, given_format("mds")).format, "mds");
  EXPECT_NE(error_of(mds, given_format("litdata")).find("format 'litdata' was given"),
            std::string::npos);
  const std::string litdata = litdata_index({litdata_entry("c", 1, 1, "1")});
  EXPECT_NE(error_of(litdata, given_dtype("int32")).find("was given, but the header says"),
            std::string::npos);
}

TEST(TokenList, IsComparedWithItsFiles) {
  TokenFolder folder;
  const std::string bytes = tabled({mds_sample(mds_array(std::vector<std::int32_t>{1, 2, 3}))},
                                   only_tokens("ndarray:int32"));
  folder.write("d/s.mds", bytes);
  const TokenLayout layout = folder.open("d/s.mds");
  const auto error = [&](ListedFile listed) {
    const TokenFileList list = read(mds_index({mds_entry("s.mds", bytes.size(), 1)}));
    return thrown<FormatError>([&] {
      check_listed_size(list, listed, folder.find("d/s.mds").value());
      check_listed(list, listed, layout);
    });
  };
  ListedFile listed = read(mds_index({mds_entry("s.mds", bytes.size(), 1)})).files[0];
  listed.documents = 2;
  EXPECT_EQ(error(listed), "d/s.mds: expected 2 samples, as d/index.json says, found 1");
  listed.documents = 1;
  listed.tokens = 4;
  EXPECT_EQ(error(listed), "d/s.mds: expected 4 tokens, as d/index.json says, found 3");
  listed.file_bytes += 1;
  EXPECT_EQ(error(listed), "d/s.mds: expected " + std::to_string(bytes.size() + 1) +
                               " bytes, as d/index.json says, found " +
                               std::to_string(bytes.size()));
}

}  // namespace
}  // namespace lowtide::token_list_test

// Every folder in tests/golden/tokens/folders is read as the tools that own the formats read it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "lowtide/tokens.h"
#include "support/golden.h"
#include "support/thrown.h"

namespace lowtide::golden_folders_test {
namespace {

const std::filesystem::path kFolders = golden("tokens") / "folders";

struct Expected {
  std::string name, format, given, descr, tokens, checksum, documents;
};

std::vector<Expected> read_expected() {
  std::ifstream file(kFolders / "expected.txt");
  std::vector<Expected> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    Expected row;
    for (std::string* cell : {&row.name, &row.format, &row.given, &row.descr, &row.tokens,
                              &row.checksum, &row.documents}) {
      std::getline(cells, *cell, '\t');
    }
    rows.push_back(row);
  }
  return rows;
}

TokensOptions options_of(const Expected& row) {
  TokensOptions options;
  options.read.memory_bytes = 1 << 20;
  if (row.given != "-") options.dtype = row.given;
  return options;
}

std::string checksum_of(const Tokens& tokens) {
  const std::uint64_t item_bytes = tokens.dtype().itemsize_bytes;
  std::vector<std::byte> bytes(tokens.size() * item_bytes);
  tokens.read(0, tokens.size(), bytes);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < tokens.size(); ++i) {
    std::uint64_t value = 0;  // none of them is negative
    for (std::uint64_t b = item_bytes; b-- > 0;) {
      value = value << 8 | std::to_integer<std::uint64_t>(bytes[i * item_bytes + b]);
    }
    sum += (i + 1) * value;
  }
  return std::to_string(sum);
}

std::string documents_of(const Tokens& tokens) {
  std::vector<std::int64_t> offsets(tokens.documents().value() + 1);
  tokens.document_offsets(0, offsets);
  std::string out;
  for (const std::int64_t offset : offsets)
    out += (out.empty() ? "" : ",") + std::to_string(offset);
  return out;
}

TEST(GoldenFolders, AreReadAsTheirToolsReadThem) {
  const std::vector<Expected> rows = read_expected();
  ASSERT_GE(rows.size(), 13u);
  for (const Expected& row : rows) {
    for (const bool named : {false, true}) {
      SCOPED_TRACE(row.name);
      TokensOptions options = options_of(row);
      if (named) options.format = row.format;
      const std::string path = (kFolders / row.name).string() + (named ? "/index.json" : "");
      const Tokens tokens = Tokens::open(path, options);
      EXPECT_EQ(tokens.format(), row.format);
      EXPECT_EQ(tokens.dtype().descr(), row.descr);
      EXPECT_EQ(std::to_string(tokens.size()), row.tokens);
      EXPECT_EQ(checksum_of(tokens), row.checksum);
      EXPECT_EQ(documents_of(tokens), row.documents);
    }
  }
}

TEST(GoldenFolders, AreRefusedWithWhatToDo) {
  const auto error = [](const std::string& name) {
    return thrown<FormatError>([&] { (void)Tokens::open(kFolders / name); });
  };
  EXPECT_NE(error("refused_mds_zstd").find("zstd -d shard.00000.mds.zstd -o shard.00000.mds"),
            std::string::npos);
  EXPECT_NE(error("refused_mds_pickles").find("Python pickles, which Lowtide never loads"),
            std::string::npos);
  EXPECT_NE(error("refused_litdata_zstd").find("zstd -d chunk-0-0.zstd.bin -o chunk-0-0.bin"),
            std::string::npos);
  EXPECT_NE(error("refused_litdata_trees").find("item_loader=litdata.TokensLoader()"),
            std::string::npos);
}

TEST(GoldenFolders, HaveNoFolderWithoutExpectation) {
  std::set<std::string> expected{"refused_mds_zstd", "refused_mds_pickles", "refused_litdata_zstd",
                                 "refused_litdata_trees"};
  for (const Expected& row : read_expected()) expected.insert(row.name);
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(kFolders)) {
    if (entry.is_directory()) found.insert(entry.path().filename());
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace lowtide::golden_folders_test

// Every file in tests/golden/tokens is read as the tools that own the formats read it.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/golden.h"
#include "support/token_files.h"

namespace lowtide::golden_tokens_test {
namespace {

const std::filesystem::path kFolder = golden("tokens");

struct Expected {
  std::string name, format, given, descr, tokens, checksum, documents;
};

std::vector<Expected> read_expected() {
  std::ifstream file(kFolder / "expected.txt");
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

std::set<std::string> token_files() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (!entry.is_regular_file()) continue;  // golden_folders_test.cc
    if (entry.path().extension() != ".txt") names.insert(entry.path().filename());
  }
  return names;
}

std::string read_file(const std::string& name) {
  std::ifstream file(kFolder / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Two's complement, sign extended: the same sum modulo 2^64 for signed and unsigned tokens.
std::uint64_t integer_at(const std::string& bytes, std::uint64_t offset_bytes, const DType& dtype) {
  std::uint64_t value = 0;
  for (std::uint64_t i = dtype.itemsize_bytes; i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes.at(offset_bytes + i));
  }
  const std::uint64_t unused_bits = 64 - 8 * dtype.itemsize_bytes;
  if (dtype.kind == 'u') return value;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused_bits) >> unused_bits);
}

std::string checksum_of(const TokenLayout& layout, const std::string& data) {
  std::uint64_t sum = 0;
  std::uint64_t place = 1;
  for (const TokenExtent& extent : layout.extents) {
    for (std::uint64_t i = 0; i < extent.tokens; ++i) {
      sum += place++ *
             integer_at(data, extent.offset_bytes + i * layout.dtype.itemsize_bytes, layout.dtype);
    }
  }
  return std::to_string(sum);
}

// As the contract of DocumentIndex says, for the one extent that these files have.
std::string documents_of(const TokenLayout& layout) {
  if (!layout.documents) return "-";
  const DocumentIndex& index = *layout.documents;
  const std::string bytes = read_file(index.path);
  const DType int64 = DType::parse("<i8");
  std::string out;
  for (std::uint64_t d = 0; d <= index.documents; ++d) {
    const std::uint64_t sequence = integer_at(bytes, index.documents_offset_bytes + 8 * d, int64);
    std::uint64_t place = layout.tokens;
    if (sequence < index.sequences) {
      place = integer_at(bytes, index.pointers_offset_bytes + 8 * sequence, int64) /
              layout.dtype.itemsize_bytes;
    }
    out += (d == 0 ? "" : ",") + std::to_string(place);
  }
  return out;
}

TEST(GoldenTokens, AreReadAsTheirToolsReadThem) {
  const std::vector<Expected> rows = read_expected();
  ASSERT_GE(rows.size(), 24u);
  TokenFolder folder;
  for (const std::string& name : token_files()) folder.write(name, read_file(name));
  for (const Expected& row : rows) {
    SCOPED_TRACE(row.name);
    const TokenLayout layout =
        folder.open(row.name, row.given == "-" ? TokenGiven{} : given_dtype(row.given));
    EXPECT_EQ(layout.format, row.format);
    EXPECT_EQ(layout.dtype.descr(), row.descr);
    EXPECT_EQ(std::to_string(layout.tokens), row.tokens);
    EXPECT_EQ(layout.extents.size(), 1u);
    EXPECT_EQ(checksum_of(layout, read_file(layout.data_path)), row.checksum);
    EXPECT_EQ(documents_of(layout), row.documents);
    const TokenGiven said{.dtype = layout.dtype, .format = layout.format};
    EXPECT_EQ(folder.open(row.name, said).tokens, layout.tokens);
  }
}

TEST(GoldenTokens, OfUint32WithoutAHeaderAreNotTakenForUint16) {
  for (const char* name : {"nanogpt_uint32.bin", "olmo_uint32.npy"}) {
    TokenFolder folder;
    folder.write(name, read_file(name));
    EXPECT_NE(folder.error(name).find("give the dtype explicitly, uint32 or uint16"),
              std::string::npos)
        << name;
  }
}

TEST(GoldenTokens, HaveNoFileWithoutExpectation) {
  std::set<std::string> names;
  for (const Expected& row : read_expected()) names.insert(row.name);
  EXPECT_EQ(token_files(), names);
}

}  // namespace
}  // namespace lowtide::golden_tokens_test

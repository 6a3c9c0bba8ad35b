// Every file of tests/golden/arrays, which other tools wrote, is read as they read it.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/bytes_file.h"
#include "support/golden.h"

namespace lowtide::golden_arrays_test {
namespace {

struct Expected {
  std::string name, key, dtype, shape, order, data;
};

std::vector<Expected> read_expected() {
  std::ifstream file(golden("arrays") / "expected.txt");
  std::vector<Expected> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    Expected row;
    for (std::string* cell : {&row.name, &row.key, &row.dtype, &row.shape, &row.order, &row.data}) {
      std::getline(cells, *cell, '\t');
    }
    rows.push_back(row);
  }
  return rows;
}

// The elements in the order of the file, without what is between rows.
std::string elements(const BytesFile& file, const Layout& layout) {
  if (layout.row_prefix.empty()) {
    return file.bytes.substr(layout.data_offset_bytes, layout.data_bytes);
  }
  const std::uint64_t row_bytes = layout.data_bytes / layout.shape[0];
  std::string all;
  for (std::uint64_t row = 0; row < layout.shape[0]; ++row) {
    const std::uint64_t at =
        layout.data_offset_bytes + row * (row_bytes + layout.row_prefix.size());
    EXPECT_EQ(file.bytes.substr(at - layout.row_prefix.size(), layout.row_prefix.size()),
              layout.row_prefix);
    all += file.bytes.substr(at, row_bytes);
  }
  return all;
}

std::string hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

TEST(GoldenArrays, AreReadAsTheirToolsReadThem) {
  const std::vector<Expected> rows = read_expected();
  ASSERT_GE(rows.size(), 35u);
  for (const Expected& row : rows) {
    SCOPED_TRACE(row.name + " " + row.key);
    const BytesFile file = BytesFile::load((golden("arrays") / row.name).string());
    const Layout layout =
        file.open(row.key.empty() ? std::nullopt : std::optional<std::string>(row.key));
    if (!layout.dtype.extension.empty()) {
      EXPECT_EQ(layout.dtype.extension, row.dtype);
    } else if (row.dtype.starts_with('[')) {
      EXPECT_EQ(layout.dtype.descr(), row.dtype);
    } else {
      EXPECT_EQ(layout.dtype, DType::parse(row.dtype));
    }
    EXPECT_EQ(shape_text(layout.shape), row.shape);
    EXPECT_EQ(layout.fortran_order ? "F" : "C", row.order);
    EXPECT_EQ(hex(elements(file, layout)), row.data);
    EXPECT_TRUE(row.name.ends_with("." + layout.format));
  }
}

TEST(GoldenArrays, MembersAreAllThatTheToolWrote) {
  std::set<std::string> expected, found;
  for (const Expected& row : read_expected()) {
    if (!row.key.empty()) expected.insert(row.name + " " + row.key);
  }
  for (const char* const name :
       {"types.safetensors", "odd.safetensors", "one.safetensors", "none.safetensors",
        "newer.safetensors", "several.npz", "one.npz", "zip64.npz", "compressed.npz"}) {
    const BytesFile file = BytesFile::load((golden("arrays") / name).string());
    for (const ArrayMember& member : file.members()) {
      if (member.fault.empty()) found.insert(name + (" " + member.key));
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(GoldenArrays, WhatCannotBeReadInPlaceSaysWhy) {
  const auto error = [](const char* name, const std::string& key) {
    return BytesFile::load((golden("arrays") / name).string()).error(key);
  };
  EXPECT_NE(error("compressed.npz", "x").find("np.savez instead of np.savez_compressed"),
            std::string::npos);
  EXPECT_NE(error("newer.safetensors", "four_bits").find("found 'F4'"), std::string::npos);
}

}  // namespace
}  // namespace lowtide::golden_arrays_test

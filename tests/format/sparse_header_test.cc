// The header of a folder of BioNeMo-SCDL.
#include "format/sparse_header.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::sparse_header_test {
namespace {

using scdl::Header;

std::string big_endian(std::uint64_t value, int size_bytes) {
  std::string text;
  for (int byte = size_bytes - 1; byte >= 0; --byte) text += static_cast<char>(value >> (8 * byte));
  return text;
}

struct Array {
  std::string name;
  std::uint64_t length, code;
  std::uint64_t axes = 0;
};

std::string header_of(const std::vector<Array>& arrays, std::uint64_t backend = 1) {
  std::string text = "SCDL" + std::string("\0\1\0\1", 4);
  text += big_endian(backend, 4) + big_endian(arrays.size(), 4);
  for (const Array& array : arrays) {
    text += big_endian(array.name.size(), 4) + array.name + big_endian(array.length, 8) +
            big_endian(array.code, 4) + big_endian(array.axes == 0 ? 0 : 1, 1);
    if (array.axes > 0) text += big_endian(array.axes, 4) + std::string(4 * array.axes, '\1');
  }
  return text;
}

const std::vector<Array> kWhole = {
    {"DATA", 1000, 6}, {"OTHER", 5, 99, 2}, {"COLPTR", 1000, 3, 1}, {"ROWPTR", 31, 4}};

Header parse(const std::string& text) {
  return scdl::parse_header(std::as_bytes(std::span(text)), "s/header.sch");
}

TEST(SparseHeader, TellsTypesAndLengths) {
  const Header found = parse(header_of(kWhole));
  EXPECT_EQ(found.data.dtype, "float32");
  EXPECT_EQ(found.data.length, 1000);
  EXPECT_EQ(found.columns.dtype, "uint32");
  EXPECT_EQ(found.rows.dtype, "uint64");
  EXPECT_EQ(found.rows.length, 31);
}

TEST(SparseHeader, IsKnownByItsFirstBytes) {
  const std::string text = header_of(kWhole);
  EXPECT_TRUE(scdl::is_header(std::as_bytes(std::span(text))));
  EXPECT_FALSE(scdl::is_header(std::as_bytes(std::span("SCD", 3))));
  EXPECT_FALSE(scdl::is_header(std::as_bytes(std::span("SCDX.", 5))));
}

TEST(SparseHeader, EveryTruncationIsAnError) {
  const std::string text = header_of(kWhole);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW((void)parse(text.substr(0, size)), FormatError) << size;
  }
}

TEST(SparseHeader, RefusesWhatItDoesNotKnow) {
  const auto refused = [](const std::string& text) {
    const auto error = caught<FormatError>([&] { (void)parse(text); });
    return error ? std::string(error->what()) : "";
  };
  EXPECT_NE(refused(header_of(kWhole, 2)).find("backend 2"), std::string::npos);
  EXPECT_NE(refused(header_of({{"DATA", 1, 6}})).find("lacks COLPTR"), std::string::npos);
  EXPECT_NE(refused(header_of({{"DATA", 1, 8}})).find("type 8"), std::string::npos);
  EXPECT_NE(refused(header_of({{"DATA", 0, 6}, {"COLPTR", 0, 3}, {"ROWPTR", 0, 4}})).find("ends"),
            std::string::npos);
  EXPECT_NE(refused(header_of(kWhole).replace(12, 4, "\xFF\xFF\xFF\xFF"))  // four billion arrays
                .find("ends early"),
            std::string::npos);
  EXPECT_NE(
      refused(header_of({{"DATA", 1, 6, 3}}).replace(37, 4, "\xFF\xFF\xFF\xFF")).find("ends early"),
      std::string::npos);
}

}  // namespace
}  // namespace lowtide::sparse_header_test

// Files of vectors: bins.cc and vecs.cc.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "support/bytes_file.h"

namespace lowtide::vectors_test {
namespace {

using Shape = std::vector<std::uint64_t>;

std::string bin_of(std::uint64_t rows, std::uint64_t columns, std::uint64_t data_bytes) {
  return little(rows, 4) + little(columns, 4) + std::string(data_bytes, 'd');
}

std::string vecs_of(std::initializer_list<std::uint64_t> dimensions, std::size_t item_bytes) {
  std::string bytes;
  for (const std::uint64_t dimension : dimensions) {
    bytes += little(dimension, 4) + std::string(dimension * item_bytes, 'd');
  }
  return bytes;
}

bool says(const std::string& text, const std::string& part) {
  return text.starts_with("v.") && text.find(part) != std::string::npos;
}

TEST(Bins, ShapeIsInTheHeaderAndTypeInTheName) {
  for (const auto& [path, descr, item] : {std::tuple("v.fbin", "'<f4'", 4),
                                          {"v.ibin", "'<i4'", 4},
                                          {"v.u8bin", "'|u1'", 1},
                                          {"v.i8bin", "'|i1'", 1}}) {
    const Layout layout = BytesFile{path, bin_of(5, 3, 15u * static_cast<unsigned>(item))}.open();
    EXPECT_EQ(layout.format, std::string(path).substr(2));
    EXPECT_EQ(layout.dtype.descr(), descr);
    EXPECT_EQ(layout.shape, (Shape{5, 3}));
    EXPECT_EQ(layout.data_offset_bytes, 8u);
    EXPECT_EQ(layout.row_prefix, "");
  }
}

TEST(Bins, RefusesASizeThatContradictsTheHeader) {
  const auto error = [](const std::string& bytes) { return BytesFile{"v.fbin", bytes}.error(); };
  EXPECT_TRUE(says(error(bin_of(5, 3, 59)),
                   "expected 60 bytes of data at byte 8 for the 5 rows of 3 values in its header, "
                   "found 59"));
  EXPECT_TRUE(says(error(bin_of(5, 3, 61)), "found 61"));
  EXPECT_TRUE(says(error(bin_of(UINT32_MAX, UINT32_MAX, 4)), "less than 2^63 bytes"));
  EXPECT_TRUE(says(error("1234567"), "found the end at byte 7"));
  EXPECT_EQ(error(bin_of(0, 3, 0)), "no error, but fbin");
}

TEST(Bins, ADtypeMeansRawBytesAndAKeyIsRefused) {
  const BytesFile file{"v.fbin", bin_of(5, 3, 60)};
  raw::Description given;
  given.dtype = DType::parse("<f4");
  given.offset_bytes = 8;
  const Layout layout = open_layout(file.path, file.bytes.size(), file.reader(), given);
  EXPECT_EQ(layout.format, "raw");
  EXPECT_EQ(layout.shape, Shape{15});
  EXPECT_TRUE(says(thrown<std::invalid_argument>([&] { return file.open("a").format; }),
                   "key 'a' was given, but the file contains one array without a name"));
}

TEST(Vecs, EveryRowHasItsDimensionBeforeIt) {
  for (const auto& [path, descr, item] :
       {std::tuple("v.fvecs", "'<f4'", 4), {"v.ivecs", "'<i4'", 4}, {"v.bvecs", "'|u1'", 1}}) {
    const Layout layout = BytesFile{path, vecs_of({3, 3, 3}, static_cast<unsigned>(item))}.open();
    EXPECT_EQ(layout.format, std::string(path).substr(2));
    EXPECT_EQ(layout.dtype.descr(), descr);
    EXPECT_EQ(layout.shape, (Shape{3, 3}));
    EXPECT_EQ(layout.data_offset_bytes, 4u);
    EXPECT_EQ(layout.row_prefix, little(3, 4));
  }
}

TEST(Vecs, RefusesRowsOfDifferentDimensions) {
  const auto error = [](const std::string& bytes) { return BytesFile{"v.fvecs", bytes}.error(); };
  EXPECT_TRUE(says(error(vecs_of({3, 2}, 4)),
                   "expected a multiple of 16 bytes for rows of "
                   "dimension 3, found 28 bytes (12 too many)"));
  std::string last = vecs_of({3, 3, 3}, 4);
  last.replace(32, 4, little(4, 4));
  EXPECT_TRUE(says(error(last), "row 2 at byte 32: expected dimension 3, as in row 0, found 4"));
  EXPECT_TRUE(says(error(vecs_of({3}, 4).substr(0, 15)), "expected a multiple of 16 bytes"));
  EXPECT_TRUE(says(error(little(0, 4)), "expected the dimension of a row, 1 or more, at byte 0"));
  EXPECT_TRUE(says(error(little(UINT32_MAX, 4)), "found -1"));
  EXPECT_TRUE(says(error("abc"), "found the end at byte 3"));
}

}  // namespace
}  // namespace lowtide::vectors_test

#include "chunk_format/zarr.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chunk_format/chunked_array.h"
#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::zarr_test {
namespace {

using Shape = std::vector<std::uint64_t>;

const std::string kBytes = R"({"name":"bytes","configuration":{"endian":"little"}})";

// Version 3, with any of its members replaced.
std::string version_3(const std::string& codecs = "[" + kBytes + "]",
                      const std::string& more = R"("fill_value":0)",
                      const std::string& type = R"("int32")") {
  return R"({"zarr_format":3,"node_type":"array","shape":[7,5],"data_type":)" + type +
         R"(,"chunk_grid":{"name":"regular","configuration":{"chunk_shape":[4,6]}},)"
         R"("chunk_key_encoding":{"name":"default"},"codecs":)" +
         codecs + "," + more + "}";
}

std::string version_2(const std::string& more) {
  return R"({"zarr_format":2,"shape":[7,5],"dtype":"<i2","fill_value":null,)" + more + "}";
}

ChunkedArray parsed_3(const std::string& text) {
  return parse_metadata(text, zarr::kNodeFile, "a/zarr.json").value();
}

ChunkedArray parsed_2(const std::string& more) {
  return parse_metadata(version_2(more), zarr::kArrayFile, "a/.zarray").value();
}

std::string error_3(const std::string& text) {
  return thrown<FormatError>([&] { (void)parsed_3(text); });
}

TEST(Zarr, Version3HasAShapeChunksAndNames) {
  const ChunkedArray array = parsed_3(version_3());
  EXPECT_EQ(array.layout.format, "zarr");
  EXPECT_EQ(array.layout.shape, (Shape{7, 5}));
  EXPECT_EQ(array.layout.dtype.descr(), "'<i4'");
  EXPECT_EQ(array.layout.data_bytes, 140U);
  EXPECT_EQ(array.chunk_shape, (Shape{4, 6}));
  EXPECT_EQ(array.chunk_bytes, 96U);
  EXPECT_FALSE(array.index);
  const Shape place{1, 0};
  EXPECT_EQ(array.file_name(place), "c/1/0");
  EXPECT_EQ(array.file_name({}), "c");
}

TEST(Zarr, Version2HasItsOwnNames) {
  const Shape place{1, 10};
  const std::string plain = R"("chunks":[4,2],"order":"C","compressor":null,"filters":null)";
  EXPECT_EQ(parsed_2(plain).file_name(place), "1.10");
  EXPECT_EQ(parsed_2(plain).file_name({}), "0");
  EXPECT_EQ(parsed_2(plain + R"(,"dimension_separator":"/")").file_name(place), "1/10");
}

TEST(Zarr, AnOrderThatChangesNothingIsAllowed) {
  EXPECT_EQ(parsed_2(R"("chunks":[1,5],"order":"F")").chunk_shape, (Shape{1, 5}));
  EXPECT_EQ(thrown<FormatError>([] { (void)parsed_2(R"("chunks":[2,5],"order":"F")"); }),
            "a/.zarray: expected chunks in C order, found another order of axes: write a copy in C "
            "order");
  const auto transposed = [](const std::string& order) {
    return version_3(R"([{"name":"transpose","configuration":{"order":)" + order + "}}," + kBytes +
                     "]");
  };
  EXPECT_EQ(parsed_3(transposed("[0,1]")).chunk_shape, (Shape{4, 6}));
  EXPECT_NE(error_3(transposed("[1,0]")).find("another order"), std::string::npos);
}

TEST(Zarr, AShardHasAnIndexOfItsChunks) {
  const auto sharded = [](const std::string& chunk, const std::string& more = "") {
    return version_3(R"([{"name":"sharding_indexed","configuration":{"chunk_shape":)" + chunk +
                     R"(,"codecs":[)" + kBytes + R"(],"index_codecs":[)" + kBytes +
                     R"(,{"name":"crc32c"}])" + more + "}}]");
  };
  const ChunkedArray array = parsed_3(sharded("[2,3]"));
  EXPECT_EQ(array.chunk_shape, (Shape{2, 3}));
  EXPECT_EQ(array.file_shape, (Shape{4, 6}));
  ASSERT_TRUE(array.index);
  EXPECT_EQ(array.index->entries, 4U);
  EXPECT_EQ(array.index->size_bytes(), 68U);
  EXPECT_TRUE(array.index->at_end);
  EXPECT_FALSE(parsed_3(sharded("[2,3]", R"(,"index_location":"start")")).index->at_end);
  EXPECT_NE(error_3(sharded("[3,3]")).find("whole chunks"), std::string::npos);
}

TEST(Zarr, ACodecIsNamed) {
  EXPECT_EQ(
      error_3(version_3("[" + kBytes + R"(,{"name":"zstd"}])")),
      "a/zarr.json: expected uncompressed chunks, found the codec 'zstd': write a copy without "
      "compressors and filters");
  EXPECT_NE(error_3(version_3(R"([{"name":"vlen-utf8"}])")).find("'vlen-utf8'"), std::string::npos);
  EXPECT_NE(thrown<FormatError>([] {
              (void)parsed_2(R"("chunks":[1,5],"order":"C","compressor":{"id":"blosc"})");
            }).find("'blosc'"),
            std::string::npos);
}

TEST(Zarr, TypesOfVersion3) {
  const auto descr = [](const std::string& type) {
    return parsed_3(version_3("[" + kBytes + "]", R"("fill_value":null)", type))
        .layout.dtype.descr();
  };
  EXPECT_EQ(descr(R"("bool")"), "'|b1'");
  EXPECT_EQ(descr(R"("complex128")"), "'<c16'");
  EXPECT_EQ(descr(R"("r24")"), "'|V3'");
  EXPECT_EQ(descr(R"({"name":"fixed_length_utf32","configuration":{"length_bytes":12}})"), "'<U3'");
  EXPECT_EQ(
      descr(R"({"name":"numpy.timedelta64","configuration":{"unit":"ns","scale_factor":10}})"),
      "'<m8[10ns]'");
  EXPECT_NE(thrown<FormatError>([&] { return descr(R"("r25")"); }).find("'r25'"),
            std::string::npos);
}

TEST(Zarr, AttributesMayHoldWhatPythonWrites) {
  const std::string more = R"("fill_value":0,"attributes":{"a":NaN,"b":[-Infinity]})";
  EXPECT_EQ(parsed_3(version_3("[" + kBytes + "]", more)).layout.shape, (Shape{7, 5}));
}

TEST(Zarr, AGroupIsNoArray) {
  EXPECT_FALSE(parse_metadata(R"({"zarr_format":3,"node_type":"group"})", zarr::kNodeFile, "g"));
  EXPECT_FALSE(parse_metadata(R"({"zarr_format":2})", zarr::kGroupFile, "g"));
}

}  // namespace
}  // namespace lowtide::zarr_test

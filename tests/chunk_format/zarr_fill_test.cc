#include <gtest/gtest.h>

#include <string>

#include "chunk_format/zarr.h"
#include "lowtide/error.h"

namespace lowtide::zarr_fill_test {
namespace {

// The bytes as hexadecimal digits, or "error".
std::string fill(const std::string& json, const std::string& dtype) try {
  std::string out;
  for (const std::byte byte : zarr::parse_fill(json, DType::parse(dtype))) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += kDigits[std::to_integer<unsigned>(byte) >> 4];
    out += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
} catch (const FormatError&) {
  return "error";
}

TEST(ZarrFill, Integers) {
  EXPECT_EQ(fill("null", "<i4"), "");
  EXPECT_EQ(fill("-2", "<i4"), "feffffff");
  EXPECT_EQ(fill("-2", ">i4"), "fffffffe");
  EXPECT_EQ(fill("18446744073709551615", "<u8"), "ffffffffffffffff");
  EXPECT_EQ(fill("-9223372036854775808", "<i8"), "0000000000000080");
  for (const char* const wrong : {"128", "-129", "1.5", "true", "\"1\"", "[1]", "1e2", "{}"}) {
    EXPECT_EQ(fill(wrong, "i1"), "error") << wrong;
  }
  EXPECT_EQ(fill("-1", "u1"), "error");
  EXPECT_EQ(fill("256", "u1"), "error");
  EXPECT_EQ(fill("\"NaT\"", "<M8[s]"), "0000000000000080");
}

TEST(ZarrFill, Floats) {
  EXPECT_EQ(fill("1", "<f4"), "0000803f");
  EXPECT_EQ(fill("-2.5e0", ">f8"), "c004000000000000");
  EXPECT_EQ(fill("\"NaN\"", "<f4"), "0000c07f");
  EXPECT_EQ(fill("\"-Infinity\"", "<f8"), "000000000000f0ff");
  EXPECT_EQ(fill("\"0x7fc00001\"", "<f4"), "0100c07f");
  EXPECT_EQ(fill("\"0x7fc00001\"", "<f8"), "error");
  EXPECT_EQ(fill("\"nan\"", "<f8"), "error");
  EXPECT_EQ(fill("[1,\"NaN\"]", "<c8"), "0000803f0000c07f");
  EXPECT_EQ(fill("[1]", "<c8"), "error");
}

// As NumPy rounds.
TEST(ZarrFill, Halves) {
  EXPECT_EQ(fill("0.1", "<f2"), "662e");
  EXPECT_EQ(fill("1e-7", "<f2"), "0200");
  EXPECT_EQ(fill("6.1e-5", "<f2"), "ff03");
  EXPECT_EQ(fill("6.1035e-5", "<f2"), "0004");
  EXPECT_EQ(fill("65519", "<f2"), "ff7b");
  EXPECT_EQ(fill("65520", "<f2"), "007c");
  EXPECT_EQ(fill("-1.5", "<f2"), "00be");
  EXPECT_EQ(fill("2049", "<f2"), "0068");
  EXPECT_EQ(fill("2051", "<f2"), "0268");
}

TEST(ZarrFill, BytesAndText) {
  EXPECT_EQ(fill("\"YWI=\"", "S5"), "6162000000");
  EXPECT_EQ(fill("\"YWJj\"", "S2"), "error");
  EXPECT_EQ(fill("\"YWI\"", "S5"), "error");
  EXPECT_EQ(fill("\"=\"", "S5"), "error");
  EXPECT_EQ(fill("\"Y===\"", "S5"), "error");
  EXPECT_EQ(fill("0", "S2"), "0000");
  EXPECT_EQ(fill("\"YWI=\"", "V2"), "6162");
  EXPECT_EQ(fill("[1,255]", "V2"), "01ff");
  EXPECT_EQ(fill("[1,256]", "V2"), "error");
  EXPECT_EQ(fill("[1]", "V2"), "error");
  EXPECT_EQ(fill("\"\xc3\xa4\"", "<U2"), "e400000000000000");
  EXPECT_EQ(fill("\"\xf0\x9f\x8c\x8a\"", ">U1"), "0001f30a");
  EXPECT_EQ(fill("\"abc\"", "<U2"), "error");
  EXPECT_EQ(fill("true", "bool"), "01");
  EXPECT_EQ(fill("2", "bool"), "error");
}

}  // namespace
}  // namespace lowtide::zarr_fill_test

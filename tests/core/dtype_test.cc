#include "lowtide/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::dtype_test {
namespace {

std::string error_of(std::string_view text) {
  return thrown<FormatError>([&] { const DType type = DType::parse(text); });
}

std::string native(const std::string& code) {
  return (std::endian::native == std::endian::little ? "'<" : "'>") + code + "'";
}

TEST(DType, ReadsTypeStringsOfEveryKind) {
  const std::vector<std::pair<std::string, std::uint64_t>> kTypes = {
      {"|b1", 1},      {"|i1", 1},     {"<i2", 2},   {">i4", 4},   {"<i8", 8},  {"|u1", 1},
      {">u2", 2},      {"<u4", 4},     {">u8", 8},   {"<f2", 2},   {">f4", 4},  {"<f8", 8},
      {"<f16", 16},    {"<c8", 8},     {">c16", 16}, {"<c32", 32}, {"<M8", 8},  {"<M8[ns]", 8},
      {">M8[25s]", 8}, {"<m8[us]", 8}, {"|S10", 10}, {"<U5", 20},  {">U5", 20}, {"|V8", 8},
  };
  for (const auto& [text, itemsize_bytes] : kTypes) {
    const DType type = DType::parse(text);
    EXPECT_EQ(type.itemsize_bytes, itemsize_bytes) << text;
    EXPECT_EQ(type.byte_order, text[0]) << text;
    EXPECT_EQ(type.kind, text[1]) << text;
    EXPECT_EQ(type.descr(), "'" + text + "'");
  }
}

TEST(DType, ReadsNumPyNames) {
  const std::vector<std::pair<std::string, std::string>> kNames = {
      {"float16", native("f2")},
      {"float32", native("f4")},
      {"float64", native("f8")},
      {"float128", native("f16")},
      {"longdouble", native("f16")},
      {"int8", "'|i1'"},
      {"int16", native("i2")},
      {"int32", native("i4")},
      {"int64", native("i8")},
      {"uint8", "'|u1'"},
      {"uint16", native("u2")},
      {"uint32", native("u4")},
      {"uint64", native("u8")},
      {"bool", "'|b1'"},
      {"complex64", native("c8")},
      {"complex128", native("c16")},
      {"datetime64", native("M8")},
      {"datetime64[ns]", native("M8[ns]")},
      {"timedelta64[us]", native("m8[us]")},
      {"float", native("f8")},
      {"str", native("U0")},
      {"bytes", "'|S0'"},
      {"void", "'|V0'"},
      {">datetime64[ns]", "'>M8[ns]'"},
  };
  for (const auto& [name, descr] : kNames) EXPECT_EQ(DType::parse(name).descr(), descr) << name;
}

TEST(DType, ReadsShortCodes) {
  const std::vector<std::pair<std::string, std::string>> kCodes = {
      {"f4", native("f4")}, {"i8", native("i8")}, {"u2", native("u2")}, {"b1", "'|b1'"},
      {"?", "'|b1'"},       {"b", "'|i1'"},       {"B", "'|u1'"},       {"h", native("i2")},
      {"H", native("u2")},  {"i", native("i4")},  {"I", native("u4")},  {"q", native("i8")},
      {"Q", native("u8")},  {"e", native("f2")},  {"f", native("f4")},  {"d", native("f8")},
      {">d", "'>f8'"},      {"D", native("c16")}, {"S10", "'|S10'"},    {"a5", "'|S5'"},
      {"U5", native("U5")}, {"V8", "'|V8'"},      {"c", "'|S1'"},       {"M", native("M8")},
  };
  for (const auto& [code, descr] : kCodes) EXPECT_EQ(DType::parse(code).descr(), descr) << code;
}

TEST(DType, ResolvesByteOrderAsNumPyDoes) {
  EXPECT_EQ(DType::parse("=f4").descr(), native("f4"));
  EXPECT_EQ(DType::parse("|f4").descr(), native("f4"));
  EXPECT_EQ(DType::parse("|U5").descr(), native("U5"));
  EXPECT_EQ(DType::parse(">i1").descr(), "'|i1'");
  EXPECT_EQ(DType::parse("<b1").descr(), "'|b1'");
  EXPECT_EQ(DType::parse(">S3").descr(), "'|S3'");
  EXPECT_EQ(DType::parse("<V2").descr(), "'|V2'");
}

TEST(DType, WritesDatetimeUnitsAsNumPyDoes) {
  EXPECT_EQ(DType::parse("<M8[1s]"), DType::parse("<M8[s]"));
  EXPECT_EQ(DType::parse("<M8[generic]").descr(), "'<M8'");
  EXPECT_EQ(DType::parse("<M8[025s]").unit, "[25s]");
  EXPECT_NE(DType::parse("<M8[ms]"), DType::parse("<M8[us]"));
}

TEST(DType, AcceptsItemsOfNoBytes) {
  for (const char* text : {"<U0", "|S0", "|V0"}) {
    EXPECT_EQ(DType::parse(text).itemsize_bytes, 0u) << text;
    EXPECT_EQ(DType::parse(text).descr(), "'" + std::string(text) + "'");
  }
}

TEST(DType, RefusesObjectsByName) {
  for (const char* text : {"|O", "O", "<O8", "O4", "object", "object_"}) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find("which are never unpickled"), std::string::npos) << error;
    EXPECT_NE(error.find(text), std::string::npos) << error;
  }
}

TEST(DType, RefusesWhatIsNoTypeAndNamesIt) {
  for (const char* text : {"",
                           "<",
                           "x4",
                           "f5",
                           "f0",
                           "f12",
                           "b2",
                           "B1",
                           "i3",
                           "i16",
                           "u0",
                           "c4",
                           "c64",
                           "<float32",
                           "float33",
                           "f4,i8",
                           "(3,)f4",
                           " f4",
                           "f4 ",
                           "f-4",
                           "f4x",
                           "S-1",
                           "S2147483648",
                           "U536870912",
                           "V99999999999999999999",
                           "M4",
                           "M8[]",
                           "M8[",
                           "M8[x]",
                           "M8[-2s]",
                           "M8[2147483648s]",
                           "M8[s",
                           "M8[5]",
                           "M8[5generic]",
                           "f4[ns]",
                           "M[ns]",
                           "T",
                           "<<f4",
                           "Float64"}) {
    EXPECT_EQ(error_of(text),
              "expected a NumPy dtype such as '<f4', 'uint16' or 'datetime64[ns]', found '" +
                  std::string(text) + "'");
  }
}

TEST(DType, TakesTheLargestItemsThatNumPyHas) {
  EXPECT_EQ(DType::parse("S2147483647").itemsize_bytes, 2147483647u);
  EXPECT_EQ(DType::parse("<U536870911").itemsize_bytes, 2147483644u);
}

TEST(DType, IsEqualOnlyWhereEveryPartIs) {
  EXPECT_EQ(DType::parse("<f4"), DType::parse("<f4"));
  EXPECT_NE(DType::parse("<f4"), DType::parse(">f4"));
  EXPECT_NE(DType::parse("<f4"), DType::parse("<i4"));
  EXPECT_NE(DType::parse("<f4"), DType::parse("<f8"));
  DType subarray;
  subarray.itemsize_bytes = 8;
  subarray.subshape = {2};
  subarray.element = {DType::parse("<f4")};
  EXPECT_NE(subarray, DType::parse("|V8"));
  DType structured;
  structured.itemsize_bytes = 8;
  structured.fields = {{"x", "", DType::parse("<f8"), 0}};
  EXPECT_NE(structured, DType::parse("|V8"));
  DType renamed = structured;
  EXPECT_EQ(renamed, structured);
  renamed.fields[0].name = "y";
  EXPECT_NE(renamed, structured);
}

}  // namespace
}  // namespace lowtide::dtype_test

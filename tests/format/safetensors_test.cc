#include <gtest/gtest.h>

#include <string>

#include "support/bytes_file.h"

namespace lowtide::safetensors_test {
namespace {

constexpr const char* kPath = "m.safetensors";

BytesFile file_of(const std::string& header, std::uint64_t data_bytes,
                  const std::string& path = kPath) {
  return {path, little(header.size(), 8) + header + std::string(data_bytes, 'd')};
}

std::string tensor(const std::string& name, const std::string& type, const std::string& shape,
                   const std::string& offsets) {
  return '"' + name + R"(":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

const std::string kA = tensor("a", "F32", "[2,3]", "[0,24]");
const std::string kB = tensor("b", "I8", "[5]", "[24,29]");

bool says(const std::string& text, const std::string& part) {
  return text.starts_with(std::string(kPath) + ": ") && text.find(part) != std::string::npos;
}

TEST(Safetensors, IsKnownByItsBytesWhateverItsName) {
  for (const char* const path : {"m.safetensors", "m.bin", "m"}) {
    const Layout layout = file_of("{" + kA + "}  ", 24, path).open();
    EXPECT_EQ(layout.format, "safetensors");
    EXPECT_EQ(layout.dtype.descr(), "'<f4'");
    EXPECT_EQ(layout.shape, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(layout.data_offset_bytes, 8 + kA.size() + 4);
  }
}

TEST(Safetensors, AKeyNamesATensor) {
  const BytesFile file = file_of("{" + kB + "," + kA + R"(,"__metadata__":{"x":"y"}})", 29);
  EXPECT_EQ(file.open("a").dtype.descr(), "'<f4'");
  EXPECT_EQ(file.open("b").dtype.descr(), "'|i1'");
  EXPECT_EQ(file.open("b").data_offset_bytes, file.open("a").data_offset_bytes + 24);
  EXPECT_TRUE(says(file.error(), "expected a key, because the file contains 2 arrays: 'b', 'a'"))
      << file.error();
  EXPECT_TRUE(says(file.error("c"), "expected one of the keys 'b', 'a', found the key 'c'"))
      << file.error("c");
  EXPECT_TRUE(says(file.error("__metadata__"), "found the key '__metadata__'"));
  EXPECT_EQ(file.members().size(), 2u);
}

TEST(Safetensors, AListOfManyKeysIsShortened) {
  std::string header = "{" + kA;
  for (int i = 0; i < 100; ++i)
    header += "," + tensor("n" + std::to_string(i), "U8", "[0]", "[0,0]");
  const std::string error = file_of(header + "}", 24).error();
  EXPECT_TRUE(says(error, "contains 101 arrays: 'a', 'n0'")) << error;
  EXPECT_TRUE(error.ends_with(" and 93 more")) << error;
}

TEST(Safetensors, TypesOutsideNumPyHaveNames) {
  const Layout layout = file_of("{" + tensor("a", "BF16", "[3]", "[0,6]") + "}", 6).open();
  EXPECT_EQ(layout.dtype.descr(), "'|V2'");
  EXPECT_EQ(layout.dtype.extension, "bfloat16");
  EXPECT_EQ(file_of("{" + tensor("a", "F8_E5M2", "[3]", "[0,3]") + "}", 3).open().dtype.extension,
            "float8_e5m2");
}

TEST(Safetensors, AnUnknownTypeIsAFaultOfThatTensorOnly) {
  const BytesFile file = file_of("{" + tensor("n", "F4", "[2,6]", "[24,30]") + "," + kA + "}", 30);
  EXPECT_EQ(file.open("a").data_bytes, 24u);
  EXPECT_TRUE(says(file.error("n"), "tensor 'n': expected a dtype that Lowtide knows, found 'F4'"));
  EXPECT_FALSE(file.members()[0].fault.empty());
  EXPECT_TRUE(file.members()[1].fault.empty());
}

TEST(Safetensors, RefusesTensorsThatOverlapOrLeaveGaps) {
  const auto with = [](const std::string& b, std::uint64_t bytes) {
    return file_of("{" + kA + "," + b + "}", bytes).error("a");
  };
  EXPECT_TRUE(says(with(tensor("b", "I8", "[5]", "[23,28]"), 28),
                   "tensor 'b': expected data_offsets that begin at 24, where the tensor before it "
                   "ends, found 23 (they overlap)"));
  EXPECT_TRUE(says(with(tensor("b", "I8", "[5]", "[0,5]"), 24), "(they overlap)"));
  EXPECT_TRUE(says(with(tensor("b", "I8", "[5]", "[25,30]"), 30), "found 25 (a gap)"));
  EXPECT_TRUE(says(file_of("{" + kB + "}", 29).error(), "begin at 0, where"));
}

TEST(Safetensors, RefusesLyingSizes) {
  EXPECT_TRUE(says(file_of("{" + kA + "}", 23).error(),
                   "expected 24 bytes of tensors after the header, found 23"));
  EXPECT_TRUE(says(file_of("{" + kA + "}", 25).error(), "found 25"));
  EXPECT_TRUE(
      says(file_of("{" + tensor("a", "F32", "[2,3]", "[0,20]") + "}", 20).error(),
           "tensor 'a': expected data_offsets 24 bytes apart for F32 of shape (2, 3), found "
           "20"));
  EXPECT_TRUE(
      says(file_of("{" + tensor("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}", 0).error(),
           "less than 2^63 bytes"));
  EXPECT_TRUE(says(
      file_of("{" + tensor("a", "U8", "[1]", "[18446744073709551615,18446744073709551616]") + "}",
              1)
          .error(),
      "expected an integer from 0 to 2^64 - 1"));
  EXPECT_TRUE(says(file_of("{" + tensor("a", "U8", "[1]", "[5,4]") + "}", 1).error(),
                   "expected data_offsets [begin, end] before this"));
}

TEST(Safetensors, RefusesLyingLengthsOfTheHeader) {
  EXPECT_TRUE(says(BytesFile{kPath, little(1000, 8) + "{}"}.error(),
                   "expected a safetensors header of 1000 bytes at byte 8, found the end at byte "
                   "10"));
  EXPECT_TRUE(says(BytesFile{kPath, little(UINT64_MAX, 8) + "{}"}.error(),
                   "at most 100000000 bytes, found the length 18446744073709551615"));
  EXPECT_TRUE(says(BytesFile{kPath, "abc"}.error(), "found the end at byte 3"));
  EXPECT_TRUE(says(BytesFile{kPath, little(0, 8)}.error(), "safetensors header: expected"));
  EXPECT_TRUE(says(BytesFile{kPath, little(1, 8) + "{}"}.error(), "safetensors header: expected"));
}

TEST(Safetensors, RefusesBrokenHeaders) {
  const auto with = [](const std::string& inside) {
    return file_of("{" + inside + "}", 24).error();
  };
  EXPECT_TRUE(says(with(kA + "," + kA), "each tensor once, but 'a' twice"));
  EXPECT_TRUE(says(with(kA + R"(,"__metadata__":{"x":1})"), "expected a string"));
  EXPECT_TRUE(says(with(kA + R"(,"__metadata__":{"x":"1","x":"2"})"), "each key of __metadata__"));
  EXPECT_TRUE(says(with(R"("a":{"dtype":"F32","shape":[2,3]})"), "data_offsets before this"));
  EXPECT_TRUE(says(with(R"("a":{"dtype":"F32","dtype":"F32","shape":[6],"data_offsets":[0,24]})"),
                   "each of dtype, shape and data_offsets once"));
  EXPECT_TRUE(says(with(R"("a":{"dtype":"F32","shape":[6],"data_offsets":[0,24],"x":1})"),
                   "each of dtype, shape and data_offsets once"));
  EXPECT_TRUE(says(with(tensor("a", "F32", "[-6]", "[0,24]")), "expected an integer"));
  EXPECT_TRUE(says(with(tensor("a", "F32", "[6]", "[0,24,48]")), "at most 2 numbers"));
  EXPECT_TRUE(says(with(tensor("\xff", "F32", "[6]", "[0,24]")), "expected UTF-8"));
  std::string axes = "[1";
  for (int i = 0; i < 64; ++i) axes += ",1";
  EXPECT_TRUE(says(with(tensor("a", "U8", axes + "]", "[0,1]")), "at most 64 numbers"));
  EXPECT_TRUE(
      says(file_of(R"({"a":)" + std::string(100'000, '['), 0).error(), "expected an object"));
  EXPECT_TRUE(says(file_of("[]", 0).error(), "expected an object"));
}

TEST(Safetensors, AFileWithoutTensorsHasNoArray) {
  EXPECT_TRUE(says(file_of("{}", 0).error(), "expected an array, found none in the file"));
  EXPECT_TRUE(says(file_of("{}", 0).error("a"), "expected an array, found none in the file"));
}

TEST(Safetensors, ADtypeWithoutAKeyMeansRawBytes) {
  const BytesFile file = file_of("{" + kA + "}", 24);
  raw::Description given;
  given.dtype = DType::parse("|u1");
  const auto open = [&] { return open_layout(kPath, file.bytes.size(), file.reader(), given); };
  EXPECT_EQ(open().format, "raw");
  EXPECT_EQ(open().data_bytes, file.bytes.size());
  given.key = "a";
  EXPECT_TRUE(says(thrown<FormatError>([&] { return open().format; }),
                   "dtype '|u1' was given, but the header says '<f4'"));
  given.dtype = DType::parse("<f4");
  EXPECT_EQ(open().format, "safetensors");
}

TEST(Safetensors, EveryTruncationIsAnError) {
  const BytesFile whole = file_of("{" + kA + "," + kB + "}", 29);
  for (std::size_t size = 1; size < whole.bytes.size(); ++size) {
    const BytesFile cut{kPath, whole.bytes.substr(0, size)};
    EXPECT_TRUE(says(cut.error("a"), "expected")) << size;
  }
}

}  // namespace
}  // namespace lowtide::safetensors_test

#include "format/npy.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::npy_test {
namespace {

using Shape = std::vector<std::uint64_t>;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string file_of(std::string_view header, int major = 1, std::string_view data = "") {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(major);
  out += '\0';
  out += little_endian(header.size(), major == 1 ? 2 : 4);
  out += header;
  out += data;
  return out;
}

std::string header_with(const std::string& descr, const std::string& shape,
                        const std::string& fortran_order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + fortran_order + ", 'shape': " + shape +
         ", }\n";
}

Layout parse_text(const std::string& header, int major = 1) {
  const std::string file = file_of(header, major);
  return npy::parse(as_bytes(file), std::nullopt, "m.npy");
}

std::string file_error(const std::string& file) {
  return thrown<FormatError>(
      [&] { return shape_text(npy::parse(as_bytes(file), file.size(), "m.npy").shape); });
}

std::string header_error(const std::string& header, int major = 1) {
  return file_error(file_of(header, major, std::string(64, '\0')));
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(NpyHeader, ReadsAllThreeVersions) {
  for (int major = 1; major <= 3; ++major) {
    const std::string header = header_with("'<f4'", "(3, 4)");
    const Layout layout = parse_text(header, major);
    EXPECT_EQ(layout.format, "npy");
    EXPECT_EQ(layout.dtype, DType::parse("<f4"));
    EXPECT_EQ(layout.shape, (Shape{3, 4}));
    EXPECT_FALSE(layout.fortran_order);
    EXPECT_EQ(layout.data_offset_bytes, (major == 1 ? 10 : 12) + header.size());
    EXPECT_EQ(layout.data_bytes, 48u);
  }
}

TEST(NpyHeader, TellsItsLengthFromThePreamble) {
  const std::string header = header_with("'<f4'", "(3,)");
  for (int major = 1; major <= 3; ++major) {
    const std::string file = file_of(header, major);
    const auto preamble = as_bytes(file).first(npy::kPreambleBytes);
    EXPECT_EQ(npy::header_bytes(preamble, "m.npy"), file.size());
  }
}

TEST(NpyHeader, KnowsItsMagic) {
  EXPECT_TRUE(npy::has_magic(as_bytes("\x93NUMPY")));
  EXPECT_FALSE(npy::has_magic(as_bytes("\x93NUMP")));
  EXPECT_FALSE(npy::has_magic(as_bytes("\x92NUMPY")));
  EXPECT_FALSE(npy::has_magic({}));
}

TEST(NpyHeader, RefusesAnotherMagic) {
  EXPECT_EQ(file_error("PK\x03\x04rest of a zip"),
            "m.npy: expected the .npy magic '\\x93NUMPY', found 'PK\\x03\\x04re'");
  EXPECT_EQ(file_error(""), "m.npy: expected the .npy magic '\\x93NUMPY', found ''");
}

TEST(NpyHeader, RefusesUnknownVersions) {
  EXPECT_EQ(header_error("{}", 4), "m.npy: expected .npy version 1.0, 2.0 or 3.0, found 4.0");
  EXPECT_EQ(header_error("{}", 0), "m.npy: expected .npy version 1.0, 2.0 or 3.0, found 0.0");
  std::string minor = file_of(header_with("'<f4'", "()"), 1, "data");
  minor[7] = 1;
  EXPECT_EQ(file_error(minor), "m.npy: expected .npy version 1.0, 2.0 or 3.0, found 1.1");
}

TEST(NpyHeader, RefusesEveryTruncation) {
  for (int major = 1; major <= 3; ++major) {
    const std::string whole = file_of(header_with("'<f4'", "(2,)"), major, "12345678");
    EXPECT_EQ(file_error(whole), "no error, but (2,)");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      expect_contains(file_error(whole.substr(0, size)), "m.npy: expected ");
    }
  }
  EXPECT_EQ(file_error(file_of(header_with("'<f4'", "(2,)")).substr(0, 50)),
            "m.npy: expected a .npy header up to byte 68, found the end at byte 50");
}

TEST(NpyHeader, RefusesTruncatedDataAndSaysHowMuchIsThere) {
  EXPECT_EQ(file_error(file_of(header_with("'<f4'", "(3, 4)"), 1, "1234567")),
            "m.npy: expected 48 bytes of data at byte 70 for shape (3, 4) of 4-byte items, found 7 "
            "bytes (the file has 77 bytes)");
}

TEST(NpyHeader, AllowsBytesBehindTheData) {
  EXPECT_EQ(file_error(file_of(header_with("'<f4'", "(1,)"), 1, "1234 and garbage")),
            "no error, but (1,)");
}

TEST(NpyHeader, RefusesHeaderBombsBeforeReadingThem) {
  const std::string bomb = std::string("\x93NUMPY\x02\0\xff\xff\xff\xff", 12);
  EXPECT_EQ(file_error(bomb),
            "m.npy: expected a header of at most 1 MiB, found one of 4294967295 bytes");
  const std::string padded = header_with("'<f4'", "()");
  const std::string largest = padded + std::string(npy::kMaxHeaderBytes - padded.size(), ' ');
  EXPECT_EQ(parse_text(largest, 2).data_bytes, 4u);
  expect_contains(header_error(largest + " ", 2), "found one of 1048577");
}

TEST(NpyHeader, RefusesDeepNesting) {
  const std::string deep = std::string(500000, '[');
  expect_contains(header_error(header_with(deep, "()"), 2), "at most 32 levels of brackets");
  expect_contains(header_error(header_with("'<f4'", std::string(500000, '(')), 2),
                  "at most 32 levels of brackets");
}

TEST(NpyHeader, ReadsPaddingTo16AndTo64AndNone) {
  for (const std::size_t align : {1u, 16u, 64u}) {
    std::string header = header_with("'<f4'", "(3,)");
    header.pop_back();
    while ((10 + header.size() + 1) % align != 0) header += ' ';
    EXPECT_EQ(parse_text(header + "\n").data_offset_bytes % align, 0u);
  }
}

TEST(NpyHeader, NeedsNoNewlineAtTheEnd) {
  EXPECT_EQ(parse_text("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}").data_bytes, 8u);
}

TEST(NpyHeader, ReadsPython2Longs) {
  EXPECT_EQ(parse_text(header_with("'<f4'", "(3L, 4L)"), 1).shape, (Shape{3, 4}));
  EXPECT_EQ(parse_text(header_with("'<f4'", "(3L, 4L)"), 2).shape, (Shape{3, 4}));
  expect_contains(header_error(header_with("'<f4'", "(3L,)"), 3), "found 'L,)");
}

TEST(NpyHeader, ReadsKeysInAnyOrderAndOddWhitespace) {
  const Layout layout =
      parse_text("\n{ \"shape\":(2,\n\t3)  ,\r\n'fortran_order' :True,'descr':\f'<f4'}  \n\n");
  EXPECT_EQ(layout.shape, (Shape{2, 3}));
  EXPECT_TRUE(layout.fortran_order);
}

TEST(NpyHeader, RefusesMissingExtraAndDuplicateKeys) {
  const std::string kExpected =
      "m.npy: .npy header: expected a dict with the keys 'descr', 'fortran_order' and 'shape', "
      "found ";
  EXPECT_EQ(header_error("{'descr': '<f4', 'shape': ()}"), kExpected + "no key 'fortran_order'");
  EXPECT_EQ(header_error("{'descr': '<f4', 'fortran_order': True}"), kExpected + "no key 'shape'");
  EXPECT_EQ(header_error("{}"), kExpected + "no key 'descr'");
  EXPECT_EQ(header_error("{'descr': '<f4', 'fortran_order': True, 'shape': (), 'x': 1}"),
            kExpected + "the unknown key \"'x'\"");
  EXPECT_EQ(header_error("{'descr': '<f4', 'fortran_order': True, 'shape': (), 1: 1}"),
            kExpected + "the unknown key '1'");
  EXPECT_EQ(header_error("{'shape': (), 'descr': '<f4', 'fortran_order': True, 'shape': (9,)}"),
            kExpected + "a second key \"'shape'\"");
  EXPECT_EQ(header_error("['descr']"), kExpected + "\"['descr']\"");
}

TEST(NpyHeader, RefusesTextThatIsNoLiteral) {
  for (const std::string text :
       {"", "{", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': np.float32, 'fortran_order': False, 'shape': (2,)}", "__import__('os')"}) {
    expect_contains(header_error(text), "m.npy: .npy header: expected ");
  }
  expect_contains(header_error(header_with("'<f4'", "(2,)") + std::string(1, '\0')),
                  "found '\\x00'");
}

TEST(NpyHeader, RefusesShapesThatAreNoTupleOfIntegers) {
  for (const char* shape : {"[2]", "2", "(2)", "None", "'2'", "{}", "True"}) {
    expect_contains(header_error(header_with("'<f4'", shape)),
                    "expected a shape that is a tuple of integers, found ");
  }
  for (const char* shape : {"(True,)", "(False, 2)", "('2',)", "(None,)", "((2,),)", "(-1,)",
                            "(2, -9223372036854775808)", "(9223372036854775808,)",
                            "(0, 9223372036854775808)", "(99999999999999999999999999,)"}) {
    expect_contains(header_error(header_with("'<f4'", shape)),
                    "expected shape entries that are integers from 0 to 2^63 - 1, found ");
  }
  EXPECT_EQ(
      header_error(header_with("'<f4'", "(3, True)")),
      "m.npy: .npy header: expected shape entries that are integers from 0 to 2^63 - 1, found "
      "'True'");
}

TEST(NpyHeader, RejectsShapeThatOverflows) {
  EXPECT_EQ(
      header_error(header_with("'<f4'", "(4294967296, 4294967296)")),
      "m.npy: expected an array of less than 2^63 bytes, found shape (4294967296, 4294967296) "
      "of 4-byte items");
  expect_contains(header_error(header_with("'<f4'", "(2305843009213693952,)")), "less than 2^63");
  expect_contains(header_error(header_with("'<f8'", "(4611686018427387904, 4)")), "less than 2^63");
  expect_contains(header_error(header_with("'|V0'", "(4294967296, 4294967296)")), "less than 2^63");
  // The rows of an empty array must not wrap either.
  expect_contains(header_error(header_with("'<f4'", "(0, 4294967296, 4294967296)")),
                  "less than 2^63");
  EXPECT_EQ(parse_text(header_with("'|u1'", "(9223372036854775807,)")).data_bytes,
            9223372036854775807u);
}

TEST(NpyHeader, HasAtMost64Axes) {
  const auto ones = [](int count) {
    std::string text = "(";
    for (int i = 0; i < count; ++i) text += "1,";
    return text + ")";
  };
  EXPECT_EQ(parse_text(header_with("'<f4'", ones(64))).shape.size(), 64u);
  EXPECT_EQ(header_error(header_with("'<f4'", ones(65))),
            "m.npy: expected a shape of at most 64 axes, found 65");
}

TEST(NpyHeader, ReadsZeroSizeAndZeroDimensions) {
  EXPECT_EQ(parse_text(header_with("'<f4'", "(3, 0, 2)")).data_bytes, 0u);
  const Layout scalar = parse_text(header_with("'<f4'", "()"));
  EXPECT_TRUE(scalar.shape.empty());
  EXPECT_EQ(scalar.data_bytes, 4u);
}

TEST(NpyHeader, ReadsItemsOfNoBytes) {
  for (const char* descr : {"'<U0'", "'|S0'", "'|V0'", "[]"}) {
    const Layout layout = parse_text(header_with(descr, "(3,)"));
    EXPECT_EQ(layout.dtype.itemsize_bytes, 0u) << descr;
    EXPECT_EQ(layout.data_bytes, 0u) << descr;
    EXPECT_EQ(layout.shape, (Shape{3}));
  }
}

TEST(NpyHeader, KeepsFortranOrderWhereItMeansSomething) {
  EXPECT_TRUE(parse_text(header_with("'<f4'", "(3, 4)", "True")).fortran_order);
  EXPECT_FALSE(parse_text(header_with("'<f4'", "(3,)", "True")).fortran_order);
  EXPECT_FALSE(parse_text(header_with("'<f4'", "()", "True")).fortran_order);
  for (const char* order : {"1", "0", "None", "'True'"}) {
    expect_contains(header_error(header_with("'<f4'", "(3, 4)", order)),
                    "m.npy: .npy header: expected fortran_order True or False, found ");
  }
}

TEST(NpyHeader, ReadsNamesInTheEncodingOfItsVersion) {
  EXPECT_EQ(parse_text(header_with("[('h\xf6he', '<f4')]", "()"), 1).dtype.fields[0].name,
            "h\u00f6he");
  EXPECT_EQ(parse_text(header_with("[('h\xf6he', '<f4')]", "()"), 2).dtype.fields[0].name,
            "h\u00f6he");
  EXPECT_EQ(parse_text(header_with("[('\u9ad8', '<f4')]", "()"), 3).dtype.fields[0].name, "\u9ad8");
  expect_contains(header_error(header_with("[('h\xf6he', '<f4')]", "()"), 3), "expected UTF-8");
}

TEST(NpyHeader, ReadsNativeByteOrder) {
  EXPECT_EQ(parse_text(header_with("'=f4'", "()")).dtype, DType::parse("float32"));
}

TEST(NpyHeader, MovesSubarrayAxesIntoTheShape) {
  const Layout layout = parse_text(header_with("(('<f4', (3,)), (2, 5))", "(7,)", "True"));
  EXPECT_EQ(layout.dtype, DType::parse("<f4"));
  EXPECT_EQ(layout.shape, (Shape{7, 2, 5, 3}));
  EXPECT_FALSE(layout.fortran_order);
  EXPECT_EQ(layout.data_bytes, 840u);
  EXPECT_EQ(
      header_error(header_with("('<f4', (3,))", "(2, 2)", "True")),
      "m.npy: expected C order for a sub-array dtype, found Fortran order with \"('<f4', (3,))\"");
}

TEST(NpyHeader, RefusesObjectsAlsoNested) {
  for (const char* descr : {"'|O'", "'O'", "[('x', '<f4'), ('y', '|O')]",
                            "[('a', [('b', '|O8', (2,))])]", "('|O', (3,))"}) {
    const std::string error = header_error(header_with(descr, "(1,)"));
    expect_contains(error, "m.npy: .npy header: dtype '");
    expect_contains(error, "holds Python objects, which are never unpickled");
  }
}

TEST(NpyHeader, NamesTheFileAndTheDtypeItDoesNotKnow) {
  EXPECT_EQ(header_error(header_with("'<f3'", "(1,)")),
            "m.npy: .npy header: expected a NumPy dtype such as '<f4', 'uint16' or "
            "'datetime64[ns]', found '<f3'");
}

}  // namespace
}  // namespace lowtide::npy_test

#include "format/descr.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::descr_test {
namespace {

std::string error_of(std::string_view text) {
  return thrown<FormatError>([&] { const DType type = parse_descr(text); });
}

TEST(Descr, ReadsPlainTypesQuotedOrNot) {
  EXPECT_EQ(parse_descr("'<f4'"), DType::parse("<f4"));
  EXPECT_EQ(parse_descr(" \"<f4\" "), DType::parse("<f4"));
  EXPECT_EQ(parse_descr("<f4"), DType::parse("<f4"));
  EXPECT_EQ(parse_descr("float32"), DType::parse("float32"));
  EXPECT_EQ(parse_descr("u2"), DType::parse("u2"));
}

TEST(Descr, ReadsFieldsWithOffsetsPaddingAndSubarrays) {
  const DType type = parse_descr("[('x', '<f4'), ('', '|V4'), ('y', '<i8', (2, 3))]");
  EXPECT_EQ(type.kind, 'V');
  EXPECT_EQ(type.byte_order, '|');
  EXPECT_EQ(type.itemsize_bytes, 56u);
  ASSERT_EQ(type.fields.size(), 3u);
  EXPECT_EQ(type.fields[0].name, "x");
  EXPECT_EQ(type.fields[0].type, DType::parse("<f4"));
  EXPECT_EQ(type.fields[1].name, "");
  EXPECT_EQ(type.fields[1].offset_bytes, 4u);
  EXPECT_EQ(type.fields[2].offset_bytes, 8u);
  EXPECT_EQ(type.fields[2].type.subshape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(type.fields[2].type.element.at(0), DType::parse("<i8"));
}

TEST(Descr, WritesBackWhatItRead) {
  for (const char* text : {
           "'<f4'",
           "('<f4', (3,))",
           "('<f4', (3, 4))",
           "(('<f4', (3,)), (2,))",
           "[]",
           "[('', '|V4')]",
           "[('x', '<f4'), ('', '|V4'), ('y', '<i8', (2,))]",
           "[('a', [('b', '>f8'), ('c', '|S3')], (2,)), ('d', '<M8[ns]')]",
           "[('a', ('<f4', (2,)), (3,))]",
           "[(('the title', 'x'), '<f4')]",
           "[(\"it's\", '<f4'), ('a\\nb', '<f4'), ('\xe9\xab\x98\xe3\x81\x95', '|u1')]",
           "[('none', '<f4', (0,))]",
           "[('', '<f4')]",
           "[('', '|S0')]",
           "[('', []), ('x', '|u1')]",
           "[('', [('x', '<i4')]), ('', '|V2')]",
           "[(('t', ''), '|V4')]",
           "[(('', 'x'), '<f4')]",
           "[('x', [], (2,))]",
       }) {
    EXPECT_EQ(parse_descr(text).descr(), text);
    EXPECT_EQ(parse_descr(parse_descr(text).descr()), parse_descr(text));
  }
}

TEST(Descr, ReadsOtherSpellingsAsNumPyDoes) {
  EXPECT_EQ(parse_descr("[('x', '<f4', 3)]"), parse_descr("[('x', '<f4', (3,))]"));
  EXPECT_EQ(parse_descr("[('x', ('<f4', (3,)))]"), parse_descr("[('x', '<f4', (3,))]"));
  EXPECT_EQ(parse_descr("[('x', '<f4', ())]"), parse_descr("[('x', '<f4')]"));
  EXPECT_EQ(parse_descr("[('', '<f4', (2,)), ('x', '|u1')]"),
            parse_descr("[('', '|V8'), ('x', '|u1')]"));
  EXPECT_EQ(parse_descr("[('x', '|u1'), ('', '|V0')]"), parse_descr("[('x', '|u1')]"));
  EXPECT_EQ(parse_descr("('S', 3)"), DType::parse("S3"));
  EXPECT_EQ(parse_descr("[('x', '>U0', 3)]"), parse_descr("[('x', '>U3')]"));
  EXPECT_EQ(parse_descr("[['x', '<f4', [2, 3]]]"), parse_descr("[('x', '<f4', (2, 3))]"));
}

TEST(Descr, TellsAFieldWithoutANameFromPadding) {
  for (const char* text : {"[('', '|V4')]", "[('', '|V2', (2,))]", "[('', '<f4', (1,))]"}) {
    EXPECT_TRUE(parse_descr(text).fields.at(0).is_padding()) << text;
  }
  for (const char* text :
       {"[('', '<f4')]", "[('', [])]", "[('', [('x', '<i4')])]", "[(('t', ''), '|V4')]"}) {
    EXPECT_FALSE(parse_descr(text).fields.at(0).is_padding()) << text;
  }
}

TEST(Descr, KeepsAnEmptyTitleApartFromNone) {
  EXPECT_NE(parse_descr("[(('', 'x'), '<f4')]"), parse_descr("[('x', '<f4')]"));
}

TEST(Descr, KeepsAnEmptyStructApartFromVoid) {
  EXPECT_EQ(parse_descr("[]").itemsize_bytes, 0u);
  EXPECT_NE(parse_descr("[]"), parse_descr("'|V0'"));
}

TEST(Descr, RefusesObjectsHoweverDeep) {
  for (const char* text : {"'|O'", "object", "[('x', '|O')]", "[('x', '<f4'), ('y', 'O', (2,))]",
                           "('O', (3,))", "[('a', [('b', [('c', '<O8')])])]", "[('', '|O')]"}) {
    EXPECT_NE(error_of(text).find("holds Python objects, which are never unpickled"),
              std::string::npos)
        << error_of(text);
  }
}

TEST(Descr, RefusesDuplicateNamesAndTitles) {
  for (const char* text : {"[('x', '<f4'), ('x', '<i4')]", "[(('x', 'y'), '<f4'), ('x', '<i4')]",
                           "[(('x', 'x'), '<f4')]", "[(('t', 'x'), '<f4'), (('t', 'y'), '<f4')]",
                           "[('', '<f4'), ('', '<i4')]", "[(('', ''), '<f4')]"}) {
    EXPECT_NE(error_of(text).find("expected each field name and title only once"),
              std::string::npos)
        << error_of(text);
  }
}

TEST(Descr, RefusesWhatIsNoDescrAndNamesIt) {
  EXPECT_EQ(error_of("[('x', '<f9')]"),
            "expected a NumPy dtype such as '<f4', 'uint16' or 'datetime64[ns]', found '<f9'");
  EXPECT_EQ(error_of("[('x',)]"),
            "expected a field such as ('x', '<f4') or ('x', '<f4', (2,)), found \"('x',)\"");
  EXPECT_EQ(error_of("[(1, '<f4')]"),
            "expected a field name such as 'x' or ('title', 'x'), found '1'");
  EXPECT_EQ(error_of("[((5, 'x'), '<f4')]"),
            "expected a field name such as 'x' or ('title', 'x'), found \"(5, 'x')\"");
  EXPECT_EQ(error_of("{'names': ['x'], 'formats': ['<f4']}").substr(0, 25),
            "expected a descr such as ");
  for (const char* text : {"[('x', '<f4', (1,), 2)]", "['x']", "[('x', 4)]", "('<f4',)",
                           "('<f4', (3,), 5)", "('<f4', 'x')", "()", "(('a', 'b', 'c'), '<f4')",
                           "[(('a', 'b', 'c'), '<f4')]", "[((None, 'x'), '<f4')]",
                           "[(('', ''), '|V4')]", "[('x', '<f4', None)]", "'<f4", "[", "''"}) {
    EXPECT_EQ(error_of(text).find("no error"), std::string::npos) << error_of(text);
  }
}

TEST(Descr, RefusesSubarrayShapesThatAreNotSmallIntegers) {
  for (const char* text :
       {"('<f4', (-1,))", "('<f4', -1)", "('<f4', True)", "('<f4', (True,))", "('<f4', ['2'])",
        "('<f4', ('2',))", "('<f4', (99999999999999999999,))", "('<f4', (536870912,))",
        "('<f4', (65536, 65536, 65536, 65536))", "('<f4', (0, 4294967296))"}) {
    EXPECT_EQ(error_of(text).substr(0, 8), "expected") << error_of(text);
  }
  EXPECT_EQ(parse_descr("('<f4', (536870911,))").itemsize_bytes, 2147483644u);
}

TEST(Descr, RefusesAShapeOnATypeWithoutSize) {
  for (const char* text :
       {"('S', (3,))", "('V', (3,))", "(('<f4', (0,)), (2,))", "[('x', '<U0', (2,))]"}) {
    EXPECT_NE(error_of(text).find("with a size before a sub-array shape"), std::string::npos)
        << error_of(text);
  }
}

TEST(Descr, RefusesARecordOf2GiB) {
  EXPECT_NE(error_of("[('x', 'S2147483647'), ('y', '|u1')]").find("less than 2^31 bytes"),
            std::string::npos);
}

TEST(Descr, ReadsTenThousandFields) {
  std::string text = "[";
  for (int i = 0; i < 10000; ++i) text += "('f" + std::to_string(i) + "', '<f4'), ";
  EXPECT_EQ(parse_descr(text + "]").fields.back().offset_bytes, 39996u);
}

}  // namespace
}  // namespace lowtide::descr_test

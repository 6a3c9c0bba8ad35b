#include "format/array_header.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "support/npy_file.h"
#include "support/thrown.h"

namespace lowtide::array_header_test {
namespace {

ArrayHeader header_of(const std::string& text) {
  return ArrayHeader::of_file(
      text.size(),
      [&](std::uint64_t offset, std::span<std::byte> out) {
        std::memcpy(out.data(), text.data() + offset, out.size());
      },
      "a.npy");
}

TEST(ArrayHeader, HasOneSizeForAnyNumberOfRows) {
  const ArrayHeader header(DType::parse("<f4"), {0, 162}, false, "a.npy");
  EXPECT_EQ(header.size_bytes(), 128u);
  const std::string empty = header.text(0);
  const std::string full = header.text(header.most_rows());
  EXPECT_EQ(empty.size(), 128u);
  EXPECT_EQ(full.size(), 128u);
  EXPECT_NE(full.find("'shape': (9223372036854775807, 162), }"), std::string::npos) << full;
  EXPECT_EQ(full.back(), '\n');
}

TEST(ArrayHeader, IsReadBack) {
  DType pair = DType::parse("<f4");
  const ArrayHeader made(pair, {7, 3}, false, "a.npy");
  const ArrayHeader found = header_of(made.text(2) + std::string(24, 'x'));
  EXPECT_EQ(found.layout().shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(found.text(9), made.text(9));
  EXPECT_EQ(found.most_rows(), made.most_rows());
}

TEST(ArrayHeader, TakesVersion3ForNamesThatAreNotAscii) {
  DType named;
  named.kind = 'V';
  named.itemsize_bytes = 1;
  named.fields.push_back({.name = "\xc3\xa9", .title = {}, .type = DType::parse("|u1")});
  const std::string text = ArrayHeader(named, {1}, false, "a.npy").text(1);
  EXPECT_EQ(text[6], 3);
  EXPECT_EQ(text.size() % 64, 0u);
  EXPECT_EQ(header_of(text + "x").layout().dtype, named);
}

TEST(ArrayHeader, TakesVersion2ForLongTypes) {
  DType wide;
  wide.kind = 'V';
  for (int i = 0; i < 4000; ++i) {
    wide.fields.push_back({.name = "field" + std::to_string(i),
                           .title = {},
                           .type = DType::parse("|u1"),
                           .offset_bytes = wide.itemsize_bytes++});
  }
  const std::string text = ArrayHeader(wide, {1}, false, "a.npy").text(1);
  EXPECT_EQ(text[6], 2);
  EXPECT_EQ(header_of(text + std::string(4000, 'x')).layout().dtype, wide);
}

TEST(ArrayHeader, KnowsHowManyRowsAForeignHeaderHasRoomFor) {
  // Padded to 64 bytes, as NumPy did before it reserved digits.
  const std::string text = npy_text("<f8", {5}, std::string(40, 'x'));
  const ArrayHeader header = header_of(text);
  EXPECT_GE(header.most_rows(), 5u);
  EXPECT_EQ(header.text(header.most_rows()).size(), text.size() - 40);
}

TEST(ArrayHeader, RefusesWhatCannotGrow) {
  EXPECT_NE(thrown<FormatError>([] { (void)header_of(npy_text("|u1", {}, "x")); }).find("0-d"),
            std::string::npos);
  EXPECT_NE(thrown<FormatError>([] {
              (void)header_of(npy_text("|u1", {1, 2}, "xy", true));
            }).find("Fortran order"),
            std::string::npos);
  EXPECT_THROW((void)header_of("\x93NUMP"), FormatError);
  EXPECT_THROW((void)header_of(""), FormatError);
  EXPECT_THROW(ArrayHeader(DType::parse("<f8"), {1ULL << 62}, false, "a.npy"), FormatError);
  EXPECT_EQ(thrown<std::invalid_argument>([] { check_array_name("x.f32"); }),
            "x.f32: create writes .npy files; use the name x.f32.npy");
  EXPECT_EQ(thrown<std::invalid_argument>([] { check_array_name(""); }),
            "the path is empty: name a .npy file");
}

}  // namespace
}  // namespace lowtide::array_header_test

#include "format/raw.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "format/descr.h"
#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::raw_test {
namespace {

using Shape = std::vector<std::uint64_t>;

std::string error_of(const raw::Description& description, std::uint64_t file_bytes,
                     const std::string& path = "m.f32") {
  return thrown<FormatError>(
      [&] { return shape_text(raw::describe(description, file_bytes, path).shape); });
}

raw::Description of(const std::string& dtype) {
  raw::Description description;
  description.dtype = parse_descr(dtype);
  return description;
}

TEST(Raw, TakesAllElementsWithoutAShape) {
  const Layout layout = raw::describe(of("<f4"), 40, "m.f32");
  EXPECT_EQ(layout.format, "raw");
  EXPECT_EQ(layout.dtype, DType::parse("<f4"));
  EXPECT_EQ(layout.shape, (Shape{10}));
  EXPECT_EQ(layout.data_offset_bytes, 0u);
  EXPECT_EQ(layout.data_bytes, 40u);
  EXPECT_FALSE(layout.fortran_order);
}

TEST(Raw, StartsAtTheOffset) {
  raw::Description description = of("<f4");
  description.offset_bytes = 3;
  const Layout layout = raw::describe(description, 43, "m.f32");
  EXPECT_EQ(layout.shape, (Shape{10}));
  EXPECT_EQ(layout.data_offset_bytes, 3u);
}

TEST(Raw, TakesShapeAndOrderAndLeavesBytesBehindAlone) {
  raw::Description description = of("<f4");
  description.shape = Shape{2, 3};
  description.fortran_order = true;
  const Layout layout = raw::describe(description, 1000, "m.f32");
  EXPECT_EQ(layout.shape, (Shape{2, 3}));
  EXPECT_TRUE(layout.fortran_order);
  EXPECT_EQ(layout.data_bytes, 24u);
}

TEST(Raw, NeedsADtypeAndSaysHowToGiveIt) {
  EXPECT_EQ(error_of({}, 8), "m.f32: the file has no header; give its dtype, for example float32");
  EXPECT_EQ(error_of({}, 8, "m.npy"),
            "m.npy: the file has no header; give its dtype, for example float32 (the name ends "
            "in .npy, but the .npy magic is missing)");
}

TEST(Raw, RefusesAnEmptyFile) {
  EXPECT_EQ(error_of(of("<f4"), 0), "m.f32: expected data, found an empty file");
  raw::Description description = of("<f4");
  description.shape = Shape{0};
  EXPECT_EQ(error_of(description, 0), "m.f32: expected data, found an empty file");
}

TEST(Raw, RefusesBytesThatAreNoMultipleOfTheItem) {
  EXPECT_EQ(error_of(of("<f4"), 42),
            "m.f32: expected a multiple of the item size 4 after byte 0, found 42 bytes (2 too "
            "many); give its shape or another dtype");
}

TEST(Raw, RefusesAnOffsetBeyondTheEnd) {
  raw::Description description = of("<f4");
  for (const std::uint64_t offset : {std::uint64_t{40}, std::uint64_t{44}, UINT64_MAX}) {
    description.offset_bytes = offset;
    EXPECT_EQ(error_of(description, 40), "m.f32: expected data at byte " + std::to_string(offset) +
                                             ", found the end at byte 40");
  }
  description.shape = Shape{1};
  EXPECT_EQ(error_of(description, 40),
            "m.f32: expected 4 bytes of data at byte 18446744073709551615 for shape (1,) of 4-byte "
            "items, found 0 bytes (the file has 40 bytes)");
}

TEST(Raw, RefusesAFileSmallerThanItsShape) {
  raw::Description description = of("<f4");
  description.shape = Shape{3, 4};
  description.offset_bytes = 4;
  EXPECT_EQ(error_of(description, 51),
            "m.f32: expected 48 bytes of data at byte 4 for shape (3, 4) of 4-byte items, found 47 "
            "bytes (the file has 51 bytes)");
  EXPECT_EQ(error_of(description, 52), "no error, but (3, 4)");
}

TEST(Raw, RefusesAShapeThatOverflows) {
  raw::Description description = of("<f4");
  description.shape = Shape{UINT64_MAX, 2};
  EXPECT_EQ(error_of(description, 40),
            "m.f32: expected an array of less than 2^63 bytes, found shape (18446744073709551615, "
            "2) of 4-byte items");
}

TEST(Raw, TakesADtypeOfNoBytesOnlyWithAShape) {
  raw::Description description = of("|V0");
  EXPECT_EQ(error_of(description, 40),
            "m.f32: expected a shape for a dtype of 0 bytes, found none; give one");
  description.shape = Shape{5};
  EXPECT_EQ(raw::describe(description, 40, "m").data_bytes, 0u);
}

TEST(Raw, MovesSubarrayAxesIntoTheShape) {
  const Layout layout = raw::describe(of("('<f4', (3,))"), 48, "m.f32");
  EXPECT_EQ(layout.shape, (Shape{4, 3}));
  EXPECT_EQ(layout.dtype, DType::parse("<f4"));
  EXPECT_EQ(layout.data_bytes, 48u);
}

}  // namespace
}  // namespace lowtide::raw_test

#include "format/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "format/npy.h"
#include "lowtide/error.h"
#include "support/thrown.h"

namespace lowtide::registry_test {
namespace {

using Shape = std::vector<std::uint64_t>;

// A file in memory; a read outside it is a fault of the caller.
struct FakeFile {
  std::string bytes;
  std::uint64_t most_read_bytes = 0;

  ReadStart reader() {
    return [this](std::uint64_t offset_bytes, std::span<std::byte> out) {
      if (offset_bytes > bytes.size() || out.size() > bytes.size() - offset_bytes) {
        throw std::logic_error("read outside the file");
      }
      most_read_bytes = std::max<std::uint64_t>(most_read_bytes, offset_bytes + out.size());
      std::memcpy(out.data(), bytes.data() + offset_bytes, out.size());
    };
  }

  Layout open(const raw::Description& given = {}, const std::string& path = "m.npy") {
    return open_layout(path, bytes.size(), reader(), given);
  }

  std::string error(const raw::Description& given = {}, const std::string& path = "m.npy") {
    return thrown<FormatError>([&] { return open(given, path).format; });
  }
};

FakeFile npy_file(const std::string& order = "False") {
  const std::string header =
      "{'descr': '<f4', 'fortran_order': " + order + ", 'shape': (3, 4), }\n";
  std::string bytes("\x93NUMPY\x01\0", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return {bytes + header + std::string(1000, 'x')};
}

TEST(Registry, KnowsNpyByItsMagicWhateverItsName) {
  FakeFile file = npy_file();
  for (const char* path : {"m.npy", "m.bin", "m"}) {
    const Layout layout = file.open({}, path);
    EXPECT_EQ(layout.format, "npy");
    EXPECT_EQ(layout.shape, (Shape{3, 4}));
  }
}

TEST(Registry, ReadsTheHeaderAndNotTheData) {
  FakeFile file = npy_file();
  const Layout layout = file.open();
  EXPECT_EQ(file.most_read_bytes, layout.data_offset_bytes);
}

TEST(Registry, TakesANpyNameWithoutTheMagicAsRaw) {
  FakeFile file{std::string(64, '\1')};
  raw::Description given;
  given.dtype = DType::parse("<u2");
  EXPECT_EQ(file.open(given).format, "raw");
  EXPECT_EQ(file.open(given).shape, (Shape{32}));
  EXPECT_NE(file.error().find("m.npy: the file has no header; give its dtype"), std::string::npos);
}

TEST(Registry, ReadsRawFilesShorterThanAMagic) {
  FakeFile file{"ab"};
  raw::Description given;
  given.dtype = DType::parse("<u2");
  EXPECT_EQ(file.open(given, "m").shape, (Shape{1}));
}

TEST(Registry, RefusesAnEmptyFile) {
  FakeFile file{""};
  EXPECT_EQ(file.error(), "m.npy: expected data, found an empty file");
}

TEST(Registry, RefusesATruncatedHeaderWithoutReadingBeyondTheEnd) {
  FakeFile file{npy_file().bytes.substr(0, 40)};
  EXPECT_EQ(file.error(), "m.npy: expected a .npy header up to byte 70, found the end at byte 40");
  file.bytes.resize(9);
  EXPECT_EQ(file.error(), "m.npy: expected a .npy header up to byte 10, found the end at byte 9");
}

TEST(Registry, AllowsWhatAgreesWithTheHeader) {
  FakeFile file = npy_file("True");
  raw::Description given;
  given.dtype = DType::parse("<f4");
  given.shape = Shape{3, 4};
  given.fortran_order = true;
  given.offset_bytes = file.open().data_offset_bytes;
  EXPECT_EQ(file.error(given), "no error, but npy");
}

TEST(Registry, RefusesWhatDiffersFromTheHeaderAndNamesBoth) {
  FakeFile file = npy_file();
  raw::Description given;
  given.dtype = DType::parse("<f8");
  EXPECT_EQ(file.error(given), "m.npy: dtype '<f8' was given, but the header says '<f4'");
  given = {};
  given.shape = Shape{12};
  EXPECT_EQ(file.error(given), "m.npy: shape (12,) was given, but the header says (3, 4)");
  given = {};
  given.fortran_order = true;
  EXPECT_EQ(file.error(given), "m.npy: order 'F' was given, but the header says 'C'");
  given = {};
  given.offset_bytes = 0;
  EXPECT_EQ(file.error(given), "m.npy: offset 0 was given, but the header says 70");
}

TEST(Registry, PassesOnWhatTheReaderThrows) {
  const ReadStart broken = [](std::uint64_t, std::span<std::byte>) {
    throw std::range_error("io");
  };
  EXPECT_THROW((void)open_layout("m", 10, broken, {}), std::range_error);
}

}  // namespace
}  // namespace lowtide::registry_test

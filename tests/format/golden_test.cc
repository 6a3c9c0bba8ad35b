// Every file that NumPy wrote into tests/golden/npy is read as NumPy reads it.
#include "support/golden.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "format/descr.h"
#include "format/npy.h"

namespace lowtide::golden_test {
namespace {

const std::filesystem::path kFolder = golden("npy");

struct Expected {
  std::string name, descr, shape, fortran_order, offset, data_bytes;
};

std::vector<Expected> read_expected() {
  std::ifstream file(kFolder / "expected.txt");
  std::vector<Expected> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    Expected row;
    for (std::string* cell :
         {&row.name, &row.descr, &row.shape, &row.fortran_order, &row.offset, &row.data_bytes}) {
      std::getline(cells, *cell, '\t');
    }
    rows.push_back(row);
  }
  return rows;
}

std::string read_file(const std::string& name) {
  std::ifstream file(kFolder / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(GoldenNpy, IsReadAsNumPyReadsIt) {
  const std::vector<Expected> rows = read_expected();
  ASSERT_GE(rows.size(), 30u);
  for (const Expected& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string bytes = read_file(row.name);
    const auto start = std::as_bytes(std::span(bytes));
    const Layout layout = npy::parse(start, bytes.size(), row.name);
    EXPECT_EQ(layout.dtype.descr(), row.descr);
    EXPECT_EQ(shape_text(layout.shape), row.shape);
    EXPECT_EQ(layout.fortran_order ? "True" : "False", row.fortran_order);
    EXPECT_EQ(std::to_string(layout.data_offset_bytes), row.offset);
    EXPECT_EQ(std::to_string(layout.data_bytes), row.data_bytes);
    EXPECT_EQ(layout.data_offset_bytes + layout.data_bytes, bytes.size());
    EXPECT_EQ(parse_descr(layout.dtype.descr()), layout.dtype);
  }
}

TEST(GoldenNpy, HasNoFileWithoutExpectation) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    files += entry.path().extension() == ".npy" ? 1 : 0;
  }
  EXPECT_EQ(files, read_expected().size());
}

}  // namespace
}  // namespace lowtide::golden_test

#include "os/append_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "lowtide/error.h"
#include "os/temp_folder.h"

namespace lowtide::append_file_test {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(AppendFile, BeginsAnewAndIsReadableAfterEachWrite) {
  const TempFolder folder;
  const std::string path = folder.write("a", "old");
  AppendFile file(path);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(text_of(path), "");
  EXPECT_EQ(file.append("one\n"), 0);
  EXPECT_EQ(text_of(path), "one\n");
  EXPECT_EQ(file.append(""), 0);
  EXPECT_EQ(file.append("two\n"), 0);
  EXPECT_EQ(text_of(path), "one\ntwo\n");
}

TEST(AppendFile, TellsThatThereIsNoSpaceOrNoFolder) {
  AppendFile full("/dev/full");
  EXPECT_EQ(full.append("x"), ENOSPC);
  const TempFolder folder;
  try {
    const AppendFile file(folder / "none/a");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.err, ENOENT);
    EXPECT_EQ(error.path, folder / "none/a");
  }
}

}  // namespace
}  // namespace lowtide::append_file_test

#include "os/output_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lowtide/error.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/thrown.h"

namespace lowtide::output_file_test {
namespace {

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t files_in(const std::string& folder) {
  const auto range = std::filesystem::directory_iterator(folder);
  return static_cast<std::size_t>(std::distance(begin(range), end(range)));
}

int error_of(const std::string& path, std::string_view bytes) {
  try {
    write_whole(path, bytes);
  } catch (const IoError& error) {
    EXPECT_EQ(error.path, path);
    return error.err;
  }
  return 0;
}

int calls = 0;

ssize_t write_one_byte(int fd, const void* from, std::size_t) {
  if (++calls % 3 == 0) {
    errno = EINTR;
    return -1;
  }
  return ::write(fd, from, 1);
}

ssize_t full_after_one_byte(int fd, const void* from, std::size_t) {
  if (++calls > 1) {
    errno = ENOSPC;
    return -1;
  }
  return ::write(fd, from, 1);
}

int refuse_rename(const char*, const char*) {
  errno = EXDEV;
  return -1;
}

TEST(AppendFile, BeginsAnewAndIsReadableAfterEachWrite) {
  const TempFolder folder;
  const std::string path = folder.write("a", "old");
  AppendFile file(path);
  EXPECT_EQ(file.path(), path);
  EXPECT_EQ(read(path), "");
  EXPECT_EQ(file.append("one\n"), 0);
  EXPECT_EQ(read(path), "one\n");
  EXPECT_EQ(file.append(""), 0);
  EXPECT_EQ(file.append("two\n"), 0);
  EXPECT_EQ(read(path), "one\ntwo\n");
}

TEST(AppendFile, TellsThatThereIsNoSpaceOrNoFolder) {
  AppendFile full("/dev/full");
  EXPECT_EQ(full.append("x"), ENOSPC);
  const TempFolder folder;
  const IoError error = caught<IoError>([&] { const AppendFile file(folder / "none/a"); }).value();
  EXPECT_EQ(error.err, ENOENT);
  EXPECT_EQ(error.path, folder / "none/a");
}

TEST(WholeFile, ReplacesWhatWasThere) {
  const TempFolder folder;
  const std::string path = folder.write("a b\n.html", "old and longer");
  write_whole(path, "new");
  EXPECT_EQ(read(path), "new");
  write_whole(folder / "other", pattern(3 << 20));
  EXPECT_EQ(read(folder / "other"), pattern(3 << 20));
  EXPECT_EQ(files_in(folder.path()), 2u);
}

TEST(WholeFile, IsWholeAfterShortAndInterruptedWrites) {
  const TempFolder folder;
  calls = 0;
  const sys::Fault fault(sys::table.write, &write_one_byte);
  write_whole(folder / "x", "some bytes");
  EXPECT_EQ(read(folder / "x"), "some bytes");
}

TEST(WholeFile, IsAsBeforeWhenTheDiskIsFull) {
  const TempFolder folder;
  const std::string path = folder.write("x", "old");
  calls = 0;
  const sys::Fault fault(sys::table.write, &full_after_one_byte);
  EXPECT_EQ(error_of(path, "new"), ENOSPC);
  EXPECT_EQ(read(path), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(WholeFile, LeavesNothingWhenItCannotBeRenamed) {
  const TempFolder folder;
  const sys::Fault fault(sys::table.rename, &refuse_rename);
  EXPECT_EQ(error_of(folder / "x", "new"), EXDEV);
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(WholeFile, NamesAMissingFolder) {
  const TempFolder folder;
  const IoError error = caught<IoError>([&] { write_whole(folder / "none/x", "new"); }).value();
  EXPECT_EQ(error.err, ENOENT);
  EXPECT_NE(std::string(error.what()).find("create the folder first: " + (folder / "none")),
            std::string::npos)
      << error.what();
  EXPECT_EQ(error_of(folder.path(), "new"), EISDIR);
  EXPECT_EQ(error_of(folder.write("file", "") + "/x", "new"), ENOTDIR);
}

TEST(WholeFile, KeepsALink) {
  const TempFolder folder;
  const std::string path = folder.write("real", "old");
  std::filesystem::create_symlink("real", folder / "link");
  write_whole(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(read(path), "new");
}

TEST(WholeFile, MayBeADevice) {
  write_whole("/dev/null", "gone");
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
}

}  // namespace
}  // namespace lowtide::output_file_test

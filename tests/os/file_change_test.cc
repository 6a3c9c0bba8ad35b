// Files that change under us: what is read, and what is noticed.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "os/file.h"
#include "os/temp_folder.h"
#include "support/thrown.h"

namespace lowtide::file_change_test {
namespace {

int reopen_error(const Shard& shard) {
  try {
    const File file(shard);
    return 0;
  } catch (const IoError& error) {
    return error.err;
  }
}

std::string read_back(const File& file, std::size_t size_bytes) {
  std::vector<std::byte> out(size_bytes);
  file.read_exact(0, out);
  return to_text(out);
}

TEST(ChangedFile, TheSameFileOpensAgain) {
  const TempFolder folder;
  const Shard shard = File(folder.write("a", pattern(100))).shard();
  EXPECT_EQ(reopen_error(shard), 0);
  EXPECT_EQ(File(shard).shard().version, shard.version);
}

TEST(ChangedFile, TruncatedAfterOpenIsAFormatErrorAndNoCrash) {
  const TempFolder folder;
  const std::string bytes = pattern(10'000);
  const File file(folder.write("a", bytes));
  std::filesystem::resize_file(folder / "a", 5000);
  EXPECT_EQ(read_back(file, 5000), bytes.substr(0, 5000));
  EXPECT_THROW(read_back(file, 5001), FormatError);
  EXPECT_EQ(file.stat_now().size_bytes, 5000u);
  EXPECT_NE(file.stat_now().version, file.shard().version);
  EXPECT_EQ(reopen_error(file.shard()), ESTALE);
}

TEST(ChangedFile, ReplacedByRenameGivesOldBytesAndEstaleWhenOpenedAgain) {
  const TempFolder folder;
  const std::string old_bytes = pattern(1000, 1);
  const File file(folder.write("a", old_bytes));
  std::filesystem::rename(folder.write("b", pattern(1000, 2)), folder / "a");
  EXPECT_EQ(read_back(file, 1000), old_bytes);
  EXPECT_EQ(file.stat_now().version, file.shard().version);
  const IoError error = caught<IoError>([&] { const File again(file.shard()); }).value();
  EXPECT_EQ(error.err, ESTALE);
  EXPECT_EQ(std::string(error.what()),
            "open " + (folder / "a") +
                ": Stale file handle; the file was replaced or rewritten since it was first "
                "opened (then 1000 bytes, now 1000)");
}

TEST(ChangedFile, RewrittenInPlaceIsNoticedByItsTime) {
  const TempFolder folder;
  const File file(folder.write("a", pattern(1000, 1)));
  const auto later = std::filesystem::last_write_time(folder / "a") + std::chrono::nanoseconds(1);
  std::filesystem::last_write_time(folder / "a", later);
  EXPECT_NE(file.stat_now().version, file.shard().version);
  EXPECT_EQ(reopen_error(file.shard()), ESTALE);
}

TEST(ChangedFile, DeletedWhileOpenReadsOn) {
  const TempFolder folder;
  const std::string bytes = pattern(1000);
  const File file(folder.write("a", bytes));
  std::filesystem::remove(folder / "a");
  EXPECT_EQ(read_back(file, 1000), bytes);
  EXPECT_EQ(reopen_error(file.shard()), ENOENT);
}

TEST(ChangedFile, GrownWhileOpenKeepsItsFirstSize) {
  const TempFolder folder;
  const std::string bytes = pattern(1000);
  const File file(folder.write("a", bytes));
  std::ofstream(folder / "a", std::ios::app | std::ios::binary) << "more";
  EXPECT_EQ(file.shard().size_bytes, 1000u);
  EXPECT_EQ(file.stat_now().size_bytes, 1004u);
  EXPECT_EQ(read_back(file, 1000), bytes);
  EXPECT_EQ(reopen_error(file.shard()), ESTALE);
}

}  // namespace
}  // namespace lowtide::file_change_test

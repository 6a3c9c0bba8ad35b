// A folder of kept objects stays below its limit, and what somebody reads stays in it.
#include "tier/tier_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "os/memory.h"
#include "os/paths.h"
#include "os/temp_folder.h"
#include "tier/kept_object.h"

namespace lowtide::tier_folder_test {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t kMiB = 1024 * 1024;

class TierFolderTest : public testing::Test {
 protected:
  [[nodiscard]] static std::string key(char letter) { return std::string(32, letter); }
  // Keeps `blocks` of an object, and says that it was opened this many minutes ago.
  void fill(const std::string& key, std::uint64_t blocks, int minutes) const {
    KeptObject object(folder_.path(), key, blocks * kMiB);
    const Memory memory(kMiB, /*prefault=*/true);
    for (std::uint64_t i = 0; i < blocks; ++i) object.keep(i, memory.bytes());
    fs::last_write_time(folder_.path() + "/" + key + ".blocks",
                        fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  }
  [[nodiscard]] bool here(const std::string& key) const {
    return fs::exists(folder_.path() + "/" + key + ".blocks");
  }

  const TempFolder folder_;
};

TEST_F(TierFolderTest, AllowsAsMuchAsTheLimitLeaves) {
  TierFolder folder(folder_.path(), 10 * kMiB);
  fill(key('a'), 4, 0);
  folder.use({key('a'), key('b')});
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(folder.allows(kMiB)) << i;
  fill(key('b'), 5, 0);
  EXPECT_FALSE(folder.allows(2 * kMiB));
}

TEST_F(TierFolderTest, RemovesTheLeastRecentlyOpenedThatNobodyReads) {
  fill(key('a'), 4, 30);
  fill(key('b'), 4, 60);
  fill(key('c'), 4, 90);
  TierFolder other(folder_.path(), 0);
  other.use({key('c')});
  TierFolder folder(folder_.path(), 13 * kMiB);
  folder.use({key('d')});
  EXPECT_TRUE(folder.allows(2 * kMiB));
  EXPECT_TRUE(here(key('c'))) << "the oldest, but somebody reads it";
  EXPECT_FALSE(here(key('b')));
  EXPECT_TRUE(here(key('a')));
}

TEST_F(TierFolderTest, RefusesWhenEverythingIsInUse) {
  fill(key('a'), 4, 30);
  TierFolder folder(folder_.path(), 4 * kMiB);
  folder.use({key('a')});
  EXPECT_FALSE(folder.allows(kMiB));
  EXPECT_TRUE(here(key('a')));
}

TEST_F(TierFolderTest, ForgetsUsersThatHaveEnded) {
  fill(key('a'), 4, 30);
  {
    TierFolder ended(folder_.path(), 0);
    ended.use({key('a')});
  }
  EXPECT_TRUE(list_folder(folder_.path() + "/users").empty());
  // As a killed process leaves it: the file stays, the lock does not.
  const std::string read = key('a');
  WriteFile::create(folder_.path() + "/users/killed", "killed")
      .write(0, std::as_bytes(std::span(read)));
  TierFolder folder(folder_.path(), 4 * kMiB);
  EXPECT_TRUE(folder.allows(kMiB));
  EXPECT_FALSE(here(key('a')));
  EXPECT_TRUE(list_folder(folder_.path() + "/users").empty());
}

TEST_F(TierFolderTest, RemovesWhatAKilledProcessLeftAndNoFileOfOthers) {
  const std::string orphan = folder_.write(key('e') + "-0123456789abcdef.data", "half");
  const std::string fresh = folder_.write(key('f') + "-0123456789abcdef.data", "being made");
  const std::string foreign = folder_.write("notes.txt", "mine");
  fs::last_write_time(orphan, fs::file_time_type::clock::now() - std::chrono::hours(2));
  fs::last_write_time(foreign, fs::file_time_type::clock::now() - std::chrono::hours(2));
  TierFolder folder(folder_.path(), 100 * kMiB);
  EXPECT_TRUE(folder.allows(kMiB));
  EXPECT_FALSE(fs::exists(orphan));
  EXPECT_TRUE(fs::exists(fresh));
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(TierFolderTest, LeavesATenthOfTheFileSystemFreeWithoutALimit) {
  const auto space = space_at(folder_.path());
  ASSERT_TRUE(space);
  ASSERT_GT(space->total_bytes, 0U);
  TierFolder folder(folder_.path(), 0);
  EXPECT_EQ(folder.allows(kMiB), space->free_bytes > space->total_bytes / 10 + kMiB);
  EXPECT_FALSE(folder.allows(space->free_bytes));
}

}  // namespace
}  // namespace lowtide::tier_folder_test

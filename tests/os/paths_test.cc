#include "os/paths.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "os/as_nobody.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/thrown.h"

namespace lowtide::paths_test {
namespace {

using Names = std::vector<std::string>;

std::string failure_of(const std::string& path) {
  try {
    return "found " + std::to_string(expand_path(path).size());
  } catch (const IoError& error) {
    return std::to_string(error.err) + ": " + error.what();
  }
}

TEST(ExpandPath, GivesAPathThatExistsAsItIs) {
  const TempFolder folder;
  EXPECT_EQ(expand_path(folder.write("a.npy", "")), Names{folder / "a.npy"});
  EXPECT_EQ(expand_path(folder.path()), Names{folder.path()});
}

TEST(ExpandPath, PrefersAFileWhoseNameLooksLikeAPattern) {
  const TempFolder folder;
  folder.write("run1.npy", "");
  folder.write("run[1].npy", "");
  folder.write("all*.npy", "");
  folder.write("all2.npy", "");
  EXPECT_EQ(expand_path(folder / "run[1].npy"), Names{folder / "run[1].npy"});
  EXPECT_EQ(expand_path(folder / "all*.npy"), Names{folder / "all*.npy"});
}

TEST(ExpandPath, SortsMatchesByBytes) {
  const TempFolder folder;
  for (const char* name : {"b.npy", "B.npy", "a10.npy", "a2.npy", "\xc3\xa9.npy", "_.npy",
                           "other.bin", ".hidden.npy"}) {
    folder.write(name, "");
  }
  EXPECT_EQ(expand_path(folder / "*.npy"),
            (Names{folder / "B.npy", folder / "_.npy", folder / "a10.npy", folder / "a2.npy",
                   folder / "b.npy", folder / "\xc3\xa9.npy"}));
  EXPECT_EQ(expand_path(folder / "a[0-9].npy"), Names{folder / "a2.npy"});
  EXPECT_EQ(expand_path(folder / "?.npy").size(), 3u);
}

TEST(ExpandPath, LooksIntoManyFolders) {
  const TempFolder folder;
  folder.write("2/x.npy", "");
  folder.write("1/y.npy", "");
  folder.write("file", "");
  EXPECT_EQ(expand_path(folder / "*/*.npy"), (Names{folder / "1/y.npy", folder / "2/x.npy"}));
}

TEST(ExpandPath, SaysThatNothingMatches) {
  const TempFolder folder;
  EXPECT_EQ(failure_of(folder / "*.npy"), "2: open " + (folder / "*.npy") +
                                              ": No such file or directory; no file matches this "
                                              "pattern");
  EXPECT_EQ(failure_of(folder / "none/*.npy").substr(0, 2), "2:");
}

TEST(ExpandPath, SaysWhatIsNotThere) {
  const TempFolder folder;
  EXPECT_EQ(failure_of(folder / "a.npy"),
            "2: open " + (folder / "a.npy") + ": No such file or directory");
  EXPECT_EQ(failure_of(""), "2: open: No such file or directory; the path is empty");
  EXPECT_EQ(failure_of(std::string("a\0b", 3)),
            "22: open a: Invalid argument; the path contains a NUL byte");
}

TEST(ExpandPath, FailsWhereAnUnreadableFolderCouldHideMatches) {
  const TempFolder folder;
  folder.write("open/a.npy", "");
  folder.write("shut/b.npy", "");
  ASSERT_EQ(::chmod((folder / "shut").c_str(), 0), 0);
  const std::string path = folder / "*/*.npy";
  EXPECT_EQ(
      as_nobody([&path] { return failure_of(path); }),
      "13: opendir " + (folder / "shut") + ": Permission denied; while looking for '" + path + "'");
  ASSERT_EQ(::chmod((folder / "shut").c_str(), 0700), 0);
}

TEST(PathExists, TellsFilesFoldersAndLinksFromNothing) {
  const TempFolder folder;
  const std::string file = folder.write("a.bin", "x");
  ASSERT_EQ(::symlink(file.c_str(), (folder / "good").c_str()), 0);
  ASSERT_EQ(::symlink((folder / "none").c_str(), (folder / "dangling").c_str()), 0);
  EXPECT_TRUE(path_exists(file));
  EXPECT_TRUE(path_exists(folder.path()));
  EXPECT_TRUE(path_exists(folder / "good"));
  EXPECT_FALSE(path_exists(folder / "dangling"));
  EXPECT_FALSE(path_exists(folder / "none"));
  EXPECT_FALSE(path_exists(file + "/below"));
  EXPECT_FALSE(path_exists(""));
}

TEST(IsFolder, IsTrueForFoldersAndLinksToThemOnly) {
  const TempFolder folder;
  const std::string file = folder.write("deep/a.bin", "x");
  ASSERT_EQ(::symlink((folder / "deep").c_str(), (folder / "link").c_str()), 0);
  EXPECT_TRUE(is_folder(folder.path()));
  EXPECT_TRUE(is_folder(folder.path() + "/"));
  EXPECT_TRUE(is_folder(folder / "link"));
  EXPECT_FALSE(is_folder(file));
  EXPECT_FALSE(is_folder(folder / "none"));
  EXPECT_FALSE(is_folder(""));
}

TEST(ListFolder, SortsNamesByBytesAndLeavesOutTheDots) {
  const TempFolder folder;
  for (const char* name : {"b.bin", "B.bin", "a10", "a2", "\xc3\xa9", ".hidden", "sub/x"}) {
    folder.write(name, "");
  }
  EXPECT_EQ(list_folder(folder.path()),
            (Names{".hidden", "B.bin", "a10", "a2", "b.bin", "sub", "\xc3\xa9"}));
  ASSERT_EQ(::mkdir((folder / "empty").c_str(), 0700), 0);
  EXPECT_EQ(list_folder(folder / "empty"), Names{});
}

TEST(ListFolder, SaysWhyItCannot) {
  const TempFolder folder;
  const std::string file = folder.write("a.bin", "x");
  const auto failure = [](const std::string& path) -> std::string {
    return thrown<IoError>([&] { (void)list_folder(path); });
  };
  EXPECT_EQ(failure(folder / "none"),
            "opendir " + (folder / "none") + ": No such file or directory");
  EXPECT_EQ(failure(file), "opendir " + file + ": Not a directory");
  ASSERT_EQ(::mkdir((folder / "shut").c_str(), 0), 0);
  const std::string shut = folder / "shut";
  EXPECT_EQ(as_nobody([&] { return failure(shut); }), "opendir " + shut + ": Permission denied");
}

TEST(StampOf, ChangesWithTheFile) {
  const TempFolder folder;
  EXPECT_EQ(stamp_of(folder / "none"), std::nullopt);
  const std::string file = folder.write("a", "x");
  const std::optional<PathStamp> before = stamp_of(file);
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ(stamp_of(file), before);
  folder.write("a", "xy");
  EXPECT_NE(stamp_of(file), before);
  EXPECT_EQ(stamp_of(file)->size_bytes, 2u);
  EXPECT_FALSE(before->folder);
  EXPECT_TRUE(stamp_of(folder.path())->folder);
}

TEST(RemoveFolder, RemovesAllThatIsInItAndFollowsNoLink) {
  const TempFolder folder;
  make_folder(folder / "f");
  make_folder(folder / "f");  // again
  folder.write("f/deep/er/a", "x");
  const std::string kept = folder.write("kept/b", "x");
  ASSERT_EQ(::symlink((folder / "kept").c_str(), (folder / "f/link").c_str()), 0);
  remove_folder(folder / "f");
  remove_folder(folder / "f");  // again
  EXPECT_EQ(list_folder(folder.path()), Names{"kept"});
  EXPECT_TRUE(path_exists(kept));
  EXPECT_EQ(caught<IoError>([&] { make_folder(kept); })->err, EEXIST);
  EXPECT_EQ(caught<IoError>([&] { remove_folder(kept); })->err, ENOTDIR);
}

TEST(MoveNew, ReplacesNothing) {
  const TempFolder folder;
  const std::string a = folder.write("a", "new");
  const std::string b = folder.write("b", "old");
  EXPECT_EQ(move_new(a, b), EEXIST);
  EXPECT_EQ(move_new(a, folder / "c"), 0);
  EXPECT_EQ(move_new(a, folder / "d"), ENOENT);
  // A file system without such a rename.
  const sys::Fault fault(
      sys::table.rename_how, +[](const char*, const char*, unsigned) {
        errno = EINVAL;
        return -1;
      });
  EXPECT_EQ(move_new(folder / "c", b), EEXIST);
  EXPECT_EQ(move_new(folder / "c", a), 0);
  EXPECT_EQ(exchange_names(a, b), EINVAL);
  EXPECT_EQ(list_folder(folder.path()), (Names{"a", "b"}));
}

TEST(ExchangeNames, GivesTwoFoldersEachOthersNames) {
  const TempFolder folder;
  folder.write("a/1", "x");
  folder.write("b/2", "x");
  EXPECT_EQ(exchange_names(folder / "a", folder / "b"), 0);
  EXPECT_EQ(list_folder(folder / "a"), Names{"2"});
  EXPECT_EQ(list_folder(folder / "b"), Names{"1"});
  EXPECT_EQ(exchange_names(folder / "a", folder / "none"), ENOENT);
}

}  // namespace
}  // namespace lowtide::paths_test

#include "system/maps.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/pinned_pages.h"

namespace lowtide::maps_test {
namespace {

constexpr char kSmaps[] =
    "55d0-55e0 r-xp 00001000 fd:01 42                         /usr/bin/a b\n"
    "Size:                 64 kB\nKernelPageSize:        4 kB\nRss:                  40 kB\n"
    "Pss:                  20 kB\nPss_Dirty:             9 kB\nAnonymous:             0 kB\n"
    "VmFlags: rd ex mr mw me\n"
    "55e0-55f0 rw-p 00001000 fd:01 42                         /usr/bin/a b\n"
    "Rss:                  16 kB\nPss:                  12 kB\nAnonymous:             8 kB\n"
    "7f00-7f10 rw-s 00000000 00:01 9                          /memfd:x (deleted)\n"
    "Rss:                 100 kB\nPss:                 100 kB\n"
    "7f10-7f20 rw-p 00000000 00:00 0 \n"
    "Rss:                   4 kB\nPss:                   4 kB\nAnonymous:     4 kB\n"
    "7f20-7f30 rw-p 00000000 00:00 0                          [heap]\n"
    "Rss:                   4 kB\nPss:                   4 kB\nAnonymous:     4 kB\n"
    "7f30-7f40 r--s 00000000 1f:0a 7                          /data/x\\012y (deleted)\n"
    "Rss:                   8 kB\nPss:                   8 kB\n";

TEST(Maps, KeepFilesAndLeaveMemoryOut) {
  const ProcessMaps maps = parse_smaps(kSmaps, 5);
  ASSERT_EQ(maps.files.size(), 3u);
  EXPECT_EQ(maps.pss, (20u + 12 + 100 + 4 + 4 + 8) * 1024);
  EXPECT_EQ(maps.files[0].path, "/usr/bin/a b");
  EXPECT_EQ(maps.files[0].pid, 5);
  EXPECT_EQ(maps.files[0].range, "55d0-55e0");
  EXPECT_EQ(maps.files[0].inode, 42u);
  EXPECT_EQ(maps.files[0].mapped, 40u * 1024);
  EXPECT_EQ(maps.files[0].pss, 20u * 1024);
  EXPECT_EQ(maps.files[1].mapped, 8u * 1024);  // the copied pages are heap
  EXPECT_EQ(maps.files[1].pss, 4u * 1024);
  EXPECT_EQ(maps.files[2].path, "/data/x\ny");
  EXPECT_TRUE(maps.files[2].deleted);
  EXPECT_FALSE(maps.files[0].deleted);
}

TEST(Maps, SurviveAnyText) {
  EXPECT_TRUE(parse_smaps("", 1).files.empty());
  EXPECT_TRUE(parse_smaps("Rss: 5 kB\nPss: 5 kB\n", 1).files.empty());
  EXPECT_TRUE(parse_smaps("a-b\n-\n1-2 r 0 zz:1 x /a\n1-2 r 0 1 5 /a\n", 1).files.empty());
  for (std::size_t cut = 0; cut < sizeof kSmaps - 1; ++cut) {
    EXPECT_LE(parse_smaps({kSmaps, cut}, 1).files.size(), 3u);
  }
}

// A file that this process maps and has touched, for as long as it lives.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path, std::size_t size) : pinned_(path, size) {}
  [[nodiscard]] static std::optional<FileMap> find(const std::string& path) {
    const Known<ProcessMaps> maps = read_maps({}, ::getpid());
    if (!maps) return std::nullopt;
    for (const FileMap& map : maps->files) {
      if (map.path == path) return map;
    }
    return std::nullopt;
  }
  [[nodiscard]] const std::string& why_not() const { return pinned_.why_not(); }

 private:
  PinnedPages pinned_;
};

constexpr std::size_t kSize = std::size_t{1} << 20;

TEST(Maps, OfOurselvesShowAFileWithBlanksAndNewlines) {
  const TempFolder folder;
  const std::string path = folder.write("with blank\nand line", pattern(kSize));
  const MappedFile mapped(path, kSize);
  if (!mapped.why_not().empty()) GTEST_SKIP() << mapped.why_not();
  const std::optional<FileMap> map = MappedFile::find(path);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->mapped, kSize);
  const Known<FileState> state = file_state(SystemRoot{}, *map);
  ASSERT_TRUE(state) << state.why;
  EXPECT_EQ(state->size, kSize);
  EXPECT_EQ(state->cached.value.value_or(kSize), kSize);  // unknown on old kernels
  EXPECT_EQ(state->inode, map->inode);
}

TEST(Maps, OfADeletedFileAreReadThroughTheMapOrUnknown) {
  const TempFolder folder;
  const std::string path = folder.write("a", pattern(kSize));
  const MappedFile mapped(path, kSize);
  ::unlink(path.c_str());
  const std::optional<FileMap> map = MappedFile::find(path);
  ASSERT_TRUE(map);
  EXPECT_TRUE(map->deleted);
  const Known<FileState> state = file_state(SystemRoot{}, *map);
  if (state) {
    EXPECT_EQ(state->inode, map->inode);
  } else {
    EXPECT_EQ(state.why, "the file was deleted");
  }
}

TEST(Maps, NeverTellOfAFileThatTookTheName) {
  const TempFolder folder;
  const std::string path = folder.write("a", "x");
  FileMap map;
  map.pid = ::getpid();
  map.path = path;
  map.range = "1-2";
  map.inode = 1;
  EXPECT_EQ(file_state(SystemRoot{}, map).why, "its path now names another file");
}

TEST(FileStates, AreUnknownWithTheirReason) {
  const TempFolder folder;
  EXPECT_EQ(file_state(folder / "none").why, "open: No such file or directory");
  EXPECT_EQ(file_state(folder.path()).why, "open: Is a directory");
  const std::string path = folder.write("a", "x");
  const sys::Fault fault(
      sys::table.cachestat, +[](int, const sys::CachestatRange*, sys::Cachestat*) {
        errno = ENOSYS;
        return -1;
      });
  const Known<FileState> state = file_state(path);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->size, 1u);
  EXPECT_EQ(state->cached.why, "cachestat: not available before Linux 6.5");
}

}  // namespace
}  // namespace lowtide::maps_test

#include "meter/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "meter/fake_proc.h"
#include "os/as_nobody.h"
#include "os/sys.h"
#include "support/pinned_pages.h"

namespace lowtide::files_test {
namespace {

constexpr std::size_t kSize = std::size_t{4} << 20;
constexpr int kPid = 2000000000;

const FileReading* find(const FilesReading& reading, const std::string& path) {
  const auto same = std::find_if(reading.files.begin(), reading.files.end(),
                                 [&path](const FileReading& file) { return file.path == path; });
  return same == reading.files.end() ? nullptr : &*same;
}

std::string mapping(const std::string& path, std::uint64_t inode, int rss_kib,
                    const std::string& device = "fd:01") {
  return "1000-2000 r--s 00000000 " + device + " " + std::to_string(inode) + "    " + path +
         "\nRss: " + std::to_string(rss_kib) + " kB\nPss: " + std::to_string(rss_kib / 2) +
         " kB\nPss_Dirty: 1 kB\nAnonymous: 0 kB\n";
}

TEST(MappedFiles, AreJoinedOverMapsAndProcessesByInode) {
  const FakeProc proc;
  proc.process(kPid, 1);
  proc.process(kPid + 1, 1);
  proc.file(kPid, "smaps", mapping("/a", 1, 40) + mapping("/a", 1, 20) + mapping("/b", 2, 80));
  proc.file(kPid + 1, "smaps", mapping("/a", 1, 30) + mapping("/c", 1, 2, "fd:02"));
  const FilesReading reading = read_files(proc.root(), {kPid, kPid + 1}, {});
  ASSERT_EQ(reading.files.size(), 3u);
  EXPECT_EQ(reading.files[0].path, "/a");  // the most first
  EXPECT_EQ(reading.files[0].mapped.value, 90u * 1024);
  EXPECT_EQ(reading.files[0].pss.value, 45u * 1024);
  EXPECT_EQ(reading.files[1].path, "/b");
  EXPECT_EQ(reading.files[2].path, "/c");  // the same inode on another device
  EXPECT_FALSE(reading.files[0].cached.value);
  EXPECT_NE(reading.files[0].cached.why, "");
  EXPECT_EQ(reading.pss.at(kPid).value, 70u * 1024);
  EXPECT_EQ(reading.pss.at(kPid + 1).value, 16u * 1024);
}

TEST(MappedFiles, AreAtMostSoMany) {
  const FakeProc proc;
  proc.process(kPid, 1);
  std::string smaps;
  for (int i = 1; i <= 100; ++i) {
    smaps += mapping("/f" + std::to_string(i), static_cast<unsigned>(i), 4 * i);
  }
  proc.file(kPid, "smaps", smaps);
  const FilesReading reading = read_files(proc.root(), {kPid}, {});
  ASSERT_EQ(reading.files.size(), kMostFiles);
  EXPECT_EQ(reading.files.front().path, "/f100");
}

TEST(MappedFiles, OfMoreMapsThanAreReadAreUnknown) {
  const FakeProc proc;
  proc.process(kPid, 1);
  std::string smaps = mapping("/f", 1, 40);
  while (smaps.size() < (std::size_t{17} << 20)) smaps += smaps;
  proc.file(kPid, "smaps", smaps);
  const FilesReading reading = read_files(proc.root(), {kPid}, {"/proc/none"});
  EXPECT_EQ(reading.pss.at(kPid).why,
            "/proc/PID/smaps exceeds 16 MiB: the process has too many mappings");
  ASSERT_EQ(reading.files.size(), 1u);
  EXPECT_EQ(reading.files[0].mapped.why, reading.pss.at(kPid).why);
}

TEST(MappedFiles, OfThisProcessTellWhatIsCached) {
  const TempFolder folder;
  struct statfs system {};
  ASSERT_EQ(::statfs(folder.path().c_str(), &system), 0);
  if (system.f_type == 0x01021994) GTEST_SKIP() << "tmpfs: its pages are no file's";
  const std::string path = folder.write("data", pattern(kSize));
  const PinnedPages pinned(path, kSize);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const FilesReading reading = read_files({}, {::getpid()}, {});
  const FileReading* const file = find(reading, path);
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(file->mapped.value, kSize);
  EXPECT_EQ(file->size.value, kSize);
  EXPECT_EQ(file->cached.value.value_or(kSize), kSize);
  EXPECT_EQ(file->cached.value.has_value(), file->cached.why.empty());
  struct stat now {};
  ASSERT_EQ(::stat(path.c_str(), &now), 0);
  EXPECT_EQ(file->inode, now.st_ino);

  const sys::Fault fault(
      sys::table.cachestat, +[](int, const sys::CachestatRange*, sys::Cachestat*) {
        errno = ENOSYS;
        return -1;
      });
  const FilesReading old = read_files({}, {::getpid()}, {});
  ASSERT_NE(find(old, path), nullptr);
  EXPECT_EQ(find(old, path)->cached.why, "cachestat: not available before Linux 6.5");
  EXPECT_EQ(find(old, path)->mapped.value, kSize);
}

TEST(WatchedFiles, AreToldThoughNobodyMapsThem) {
  const FakeProc proc;
  proc.process(kPid, 1);
  proc.file(kPid, "smaps", "");
  const std::string path = proc.folder().write("data", pattern(100));
  const std::string none = proc.folder() / "none";
  const FilesReading reading = read_files(proc.root(), {kPid}, {path, none});
  ASSERT_EQ(reading.files.size(), 2u);
  EXPECT_EQ(reading.files[0].path, path);
  EXPECT_EQ(reading.files[0].size.value, 100u);
  EXPECT_EQ(reading.files[0].mapped.value, 0u);
  EXPECT_EQ(reading.files[1].path, none);
  EXPECT_EQ(reading.files[1].size.why, "open: No such file or directory");
}

TEST(WatchedFiles, AreToldOnceWhereSomebodyMapsThem) {
  const TempFolder folder;
  const std::string path = folder.write("data", pattern(kSize));
  const PinnedPages pinned(path, kSize);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const FilesReading reading = read_files({}, {::getpid()}, {path});
  EXPECT_EQ(reading.files.front().path, path);
  EXPECT_EQ(reading.files.front().mapped.value, kSize);
  EXPECT_EQ(std::count_if(reading.files.begin(), reading.files.end(),
                          [&path](const FileReading& file) { return file.path == path; }),
            1);
}

TEST(MappedFiles, OfAnotherUsersProcessAreUnknownAndNotNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to have a process of another user";
  const int ours = ::getpid();
  const std::string said = as_nobody([ours] {
    const FilesReading reading = read_files({}, {ours}, {"/proc/none"});
    return reading.pss.at(ours).why + "; " + reading.files.at(0).mapped.why;
  });
  const std::string why = "no permission: the process belongs to another user";
  EXPECT_EQ(said, why + "; " + why);
}

}  // namespace
}  // namespace lowtide::files_test

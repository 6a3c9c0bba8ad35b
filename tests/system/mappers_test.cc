#include "system/mappers.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "os/file.h"
#include "os/sys.h"
#include "os/temp_folder.h"

namespace lowtide::mappers_test {
namespace {

// A /proc in which processes map what the test says.
class FakeProc {
 public:
  explicit FakeProc(const std::string& path) {
    struct stat facts {};
    EXPECT_EQ(::stat(path.c_str(), &facts), 0);
    char text[64];
    std::snprintf(text, sizeof(text), "%02x:%02x %llu", major(facts.st_dev), minor(facts.st_dev),
                  static_cast<unsigned long long>(facts.st_ino));
    key_ = text;
    inode_ = std::to_string(facts.st_ino);
  }

  void add(int pid, const std::string& maps, const std::string& flags = "rd mr") const {
    const std::string process = std::to_string(pid);
    folder_.write(process + "/maps", maps);
    folder_.write(process + "/smaps", maps + "Rss:  4 kB\nVmFlags: " + flags + "\n");
    folder_.write(process + "/stat", process +
                                         " (reader one) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 "
                                         "0 0 1 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n");
  }
  [[nodiscard]] std::string line(const std::string& key, const std::string& path) const {
    return "7f00-7f01 r--s 00000000 " + key + "      " + path + "\n";
  }
  [[nodiscard]] SystemRoot root() const { return {.proc = folder_.path()}; }
  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::string& inode() const { return inode_; }

 private:
  TempFolder folder_;
  std::string key_, inode_;
};

TEST(MappersOf, FindsProcessesByDeviceAndInode) {
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  const FakeProc proc(file.shard().path);
  proc.add(11, proc.line("00:00 0", "[heap]") + proc.line(proc.key(), "/other name"));
  proc.add(12, proc.line("ff:ff " + proc.inode(), "/another file"));
  proc.add(13, proc.line(proc.key() + "9", file.shard().path));
  const Mappers mappers = mappers_of(file, proc.root());
  ASSERT_EQ(mappers.found.size(), 1u);
  EXPECT_EQ(mappers.found[0].pid, 11);
  EXPECT_EQ(mappers.found[0].program, "reader one");
  EXPECT_FALSE(mappers.found[0].locked);
  EXPECT_EQ(mappers.hidden, 0u);
}

TEST(MappersOf, FindsThemByPathWhereTheDeviceIsAnother) {
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  const FakeProc proc(file.shard().path);
  proc.add(11, proc.line("ff:ff " + proc.inode(), file.shard().path));
  EXPECT_EQ(mappers_of(file, proc.root()).found.size(), 1u);
}

TEST(MappersOf, SeesLocksOnThisFileOnly) {
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  const FakeProc proc(file.shard().path);
  proc.add(11, proc.line(proc.key(), "/a"), "rd lo");
  proc.add(12, proc.line(proc.key(), "/a") + proc.line("fe:01 1", "/b"), "rd lo");
  const Mappers mappers = mappers_of(file, proc.root());
  ASSERT_EQ(mappers.found.size(), 2u);
  for (const Mapper& mapper : mappers.found) EXPECT_EQ(mapper.locked, mapper.pid == 11);
}

TEST(MappersOf, CountsProcessesThatItMayNotLookAt) {
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  const FakeProc proc(file.shard().path);
  std::filesystem::create_directories(proc.root().proc + "/17");
  EXPECT_EQ(mappers_of(file, proc.root()).hidden, 1u);
}

}  // namespace
}  // namespace lowtide::mappers_test

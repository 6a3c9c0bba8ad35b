#include "system/mount.h"

#include <gtest/gtest.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "os/file.h"
#include "os/residency.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "system/text_file.h"

namespace lowtide::mount_test {
namespace {

constexpr long kOverlay = 0x794c7630;
constexpr long kNameless = 0x12345;

template <long kMagic>
int magic(int, struct statfs* out) {
  *out = {};
  out->f_type = kMagic;
  return 0;
}

int no_answer(int, struct statfs*) {
  errno = ENOSYS;
  return -1;
}

TEST(Mounts, AreReadWithTheirNamesUnescaped) {
  const std::vector<Mount> mounts = parse_mounts(
      "36 25 254:1 / /data\\040disk rw,noatime shared:9 - ext4 /dev/vda1 rw,discard\n"
      "37 25 0:41 /sub /net rw - nfs4 server:/export rw,vers=4.2\n");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[0].id, 36u);
  EXPECT_EQ(mounts[0].device, "254:1");
  EXPECT_EQ(mounts[0].point, "/data disk");
  EXPECT_EQ(mounts[0].type, "ext4");
  EXPECT_EQ(mounts[0].source, "/dev/vda1");
  EXPECT_EQ(mounts[0].options, "rw,discard");
  EXPECT_EQ(mounts[1].root, "/sub");
  EXPECT_EQ(mounts[1].source, "server:/export");
}

TEST(Mounts, LeaveNonsenseOut) {
  EXPECT_TRUE(parse_mounts("").empty());
  EXPECT_TRUE(parse_mounts("\n-\na - \n1 2 3 4 5 6 -\n1 2 - ext4 x y\n").empty());
  EXPECT_EQ(parse_mounts("1 2 3:4 / /a\\0 rw - ext4\n").at(0).point, "/a\\0");
}

TEST(FileSystem, OfAMissingPathIsAnError) {
  const TempFolder folder;
  EXPECT_THROW((void)file_system_of(folder / "missing"), IoError);
  const std::string file = folder.write("a", "x");
  EXPECT_THROW((void)file_system_of(file + "/below"), IoError);
}

TEST(FileSystem, IsThatOfTheMountThatTheKernelNames) {
  const TempFolder folder;
  const auto here = file_system_of(folder.path());
  if (!here) GTEST_SKIP() << "/proc is hidden and statfs forbidden";
  EXPECT_NE(here->type, "");
  EXPECT_NE(here->device.find(':'), std::string::npos);
  EXPECT_EQ(file_system_of("/proc")->type, "proc");
  const auto mounts = parse_mounts(read_text("/proc/self/mountinfo").value_or(""));
  if (std::ranges::none_of(mounts, [](const Mount& mount) { return mount.point == "/"; })) {
    GTEST_SKIP() << "a chroot: the kernel does not name the mount of its root";
  }
  EXPECT_NE(here->point, "");
}

TEST(FileSystem, IsNamedByItsMagicWhereProcIsHidden) {
  const TempFolder folder;
  const SystemRoot hidden{folder / "proc", folder / "cgroup", folder / "sys"};
  {
    const sys::Fault fault(sys::table.fstatfs, &magic<kOverlay>);
    EXPECT_EQ(file_system_of(folder.path(), hidden)->type, "overlay");
    EXPECT_EQ(file_system_of(folder.path(), hidden)->point, "");
  }
  {
    const sys::Fault fault(sys::table.fstatfs, &magic<kNameless>);
    EXPECT_EQ(file_system_of(folder.path(), hidden)->type, "0x12345");
  }
  const sys::Fault fault(sys::table.fstatfs, &no_answer);
  EXPECT_FALSE(file_system_of(folder.path(), hidden));
}

int empty_cache(int, const sys::CachestatRange*, sys::Cachestat* out) {
  *out = {};
  return 0;
}

TEST(FileSystem, ThatIsAnOverlayMakesResidencyUnknownAndNotNothing) {
  const TempFolder folder;
  const File file(folder.write("a", pattern(8192)));
  const sys::Fault cold(sys::table.cachestat, &empty_cache);
  ASSERT_TRUE(residency(file) || is_overlay(file));
  const sys::Fault fault(sys::table.fstatfs, &magic<kOverlay>);
  std::string why;
  EXPECT_FALSE(residency(file, 0, 0, &why));
  EXPECT_EQ(why, "cachestat: overlayfs does not report what is cached of the underlying file");
}

}  // namespace
}  // namespace lowtide::mount_test

#include "os/mapping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "lowtide/error.h"
#include "os/file.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/thrown.h"

namespace lowtide::mapping_test {
namespace {

TEST(Mapping, ShowsTheBytesOfTheFileAlsoAfterTheirPagesWereLetGoOf) {
  const TempFolder folder;
  const std::string text(100'000, 'x');
  folder.write("data", text);
  const File file(folder / "data");
  const Mapping mapping(file);
  for (int again = 0; again < 2; ++again) {
    ASSERT_EQ(mapping.bytes().size(), text.size());
    EXPECT_TRUE(
        std::ranges::all_of(mapping.bytes(), [](std::byte b) { return b == std::byte{'x'}; }));
    mapping.let_go();
  }
}

TEST(Mapping, RefusalsNameTheCallAndTheFile) {
  const TempFolder folder;
  folder.write("empty", "");
  folder.write("data", "abc");
  const File empty(folder / "empty");
  EXPECT_THROW((void)Mapping(empty), FormatError);
  const File file(folder / "data");
  const Mapping mapping(file);
  const sys::Fault no_advice(
      sys::table.madvise, +[](void*, std::size_t, int) {
        errno = EINVAL;
        return -1;
      });
  EXPECT_THROW(mapping.let_go(), IoError);
  const sys::Fault no_map(
      sys::table.mmap, +[](void*, std::size_t, int, int, int, off_t) {
        errno = ENOMEM;
        return reinterpret_cast<void*>(-1);
      });
  const IoError error = caught<IoError>([&] { (void)Mapping(file); }).value();
  EXPECT_EQ(error.op, "mmap");
  EXPECT_EQ(error.path, file.shard().path);
}

}  // namespace
}  // namespace lowtide::mapping_test

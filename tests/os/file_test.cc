#include "os/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "os/as_nobody.h"
#include "os/memory.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/thrown.h"

namespace lowtide::file_test {
namespace {

std::string read_back(const File& file, std::uint64_t offset_bytes, std::size_t size_bytes) {
  std::vector<std::byte> out(size_bytes);
  file.read_exact(offset_bytes, out);
  return to_text(out);
}

// "<errno>: <text>" of the failed open, or "opened".
template <typename What>
std::string open_failure(const What& what) {
  try {
    const File file(what);
    return "opened";
  } catch (const IoError& error) {
    return std::to_string(error.err) + ": " + error.what();
  }
}

TEST(File, ReadsWhatIsThere) {
  const TempFolder folder;
  const std::string bytes = pattern(100'003);
  const File file(folder.write("a.bin", bytes));
  EXPECT_EQ(file.shard().size_bytes, bytes.size());
  EXPECT_EQ(file.shard().path, folder / "a.bin");
  EXPECT_EQ(read_back(file, 0, bytes.size()), bytes);
  EXPECT_EQ(read_back(file, 4097, 13), bytes.substr(4097, 13));
  EXPECT_EQ(read_back(file, bytes.size(), 0), "");
}

TEST(File, OpensAnEmptyFile) {
  const TempFolder folder;
  const File file(folder.write("empty", ""));
  EXPECT_EQ(file.shard().size_bytes, 0u);
  std::byte one;
  const ReadResult result = file.read(0, {&one, 1});
  EXPECT_EQ(result.placed_bytes, 0u);
  EXPECT_EQ(result.err, 0);
}

TEST(File, SaysWhereAFileEndedEarly) {
  const TempFolder folder;
  const File file(folder.write("a", pattern(100)));
  std::vector<std::byte> out(20);
  EXPECT_EQ(thrown<FormatError>([&] { file.read_exact(90, out); }),
            folder / "a" +
                ": the file ends early: expected 20 bytes at byte 90, "
                "found 10");
}

TEST(File, RefusesOffsetsThatNoFileHas) {
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  std::byte one;
  EXPECT_EQ(file.read(~0ULL, {&one, 1}).err, EOVERFLOW);
  EXPECT_EQ(file.read(1ULL << 63, {&one, 1}).err, EOVERFLOW);
}

TEST(File, LeavesNoNonblockingFlagAndClosesOnExec) {
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  EXPECT_EQ(::fcntl(file.fd(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(file.fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(File, NamesAMissingFile) {
  const TempFolder folder;
  EXPECT_EQ(open_failure(folder / "none"),
            "2: open " + (folder / "none") + ": No such file or directory");
}

TEST(File, RefusesADirectoryAndSaysWhatToName) {
  const TempFolder folder;
  EXPECT_EQ(open_failure(folder.path()), "21: open " + folder.path() +
                                             ": Is a directory; name the files in it, such as '" +
                                             (folder / "*.npy'"));
}

TEST(File, RefusesAFifoAtOnce) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(open_failure(folder / "fifo"), "22: open " + (folder / "fifo") +
                                               ": Invalid argument; it is a FIFO, not a "
                                               "regular file");
}

TEST(File, RefusesASocket) {
  const TempFolder folder;
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  const std::string path = folder / "s";
  if (path.size() >= sizeof address.sun_path) GTEST_SKIP() << "the temporary folder is too deep";
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_GE(socket, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<struct sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(open_failure(path),
            "22: open " + path + ": Invalid argument; it is a socket, not a regular file");
  ::close(socket);
}

TEST(File, RefusesADevice) {
  EXPECT_EQ(open_failure(std::string("/dev/null")),
            "22: open /dev/null: Invalid argument; it is a character device, not a regular file");
}

TEST(File, RefusesAPathWithANulByte) {
  EXPECT_EQ(open_failure(std::string("a\0b", 3)),
            "22: open a: Invalid argument; the path contains a NUL byte");
}

TEST(File, TellsThatPermissionIsMissing) {
  const TempFolder folder;
  const std::string path = folder.write("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  EXPECT_EQ(as_nobody([&path] { return open_failure(path); }),
            "13: open " + path + ": Permission denied");
}

TEST(File, LoopsOverInterruptsAndShortReads) {
  static int calls;
  static ssize_t (*real)(int, void*, std::size_t, off_t);
  calls = 0;
  real = sys::table.pread;
  const TempFolder folder;
  const std::string bytes = pattern(1000);
  const File file(folder.write("a", bytes));
  const sys::Fault fault(
      sys::table.pread, +[](int fd, void* into, std::size_t size, off_t offset) -> ssize_t {
        switch (calls++ % 3) {
          case 0:
            errno = EINTR;
            return -1;
          case 1:
            errno = EAGAIN;
            return -1;
          default:
            return real(fd, into, std::min<std::size_t>(size, 7), offset);
        }
      });
  EXPECT_EQ(read_back(file, 100, 800), bytes.substr(100, 800));
  EXPECT_EQ(calls, 3 * ((800 + 6) / 7));
}

TEST(File, GivesUpOnEndlessEagain) {
  const TempFolder folder;
  const File file(folder.write("a", "x"));
  const sys::Fault fault(
      sys::table.pread, +[](int, void*, std::size_t, off_t) -> ssize_t {
        errno = EAGAIN;
        return -1;
      });
  std::byte one;
  EXPECT_EQ(file.read(0, {&one, 1}).err, EAGAIN);
}

TEST(File, SaysWhereTheDiskFailed) {
  static ssize_t (*real)(int, void*, std::size_t, off_t);
  real = sys::table.pread;
  const TempFolder folder;
  const File file(folder.write("a", pattern(10'000)));
  const sys::Fault fault(
      sys::table.pread, +[](int fd, void* into, std::size_t size, off_t offset) -> ssize_t {
        constexpr off_t kBad = 5000;
        if (offset >= kBad) {
          errno = EIO;
          return -1;
        }
        return real(fd, into, std::min(size, static_cast<std::size_t>(kBad - offset)), offset);
      });
  std::vector<std::byte> out(8000);
  const ReadResult result = file.read(1000, out);
  EXPECT_EQ(result.err, EIO);
  EXPECT_EQ(result.placed_bytes, 4000u);
  const IoError error = caught<IoError>([&] { file.read_exact(1000, out); }).value();
  EXPECT_EQ(std::string(error.what()),
            "pread " + (folder / "a") + " at byte 5000: Input/output error");
  EXPECT_EQ(error.offset_bytes, 5000u);
}

TEST(File, ClosesItsDescriptorWhenStatxFails) {
  static int open_files;
  static int (*real_open)(const char*, int);
  static int (*real_close)(int);
  open_files = 0;
  real_open = sys::table.open;
  real_close = sys::table.close;
  const TempFolder folder;
  const std::string path = folder.write("a", "x");
  const sys::Fault opens(
      sys::table.open,
      +[](const char* name, int flags) { return ++open_files, real_open(name, flags); });
  const sys::Fault closes(sys::table.close, +[](int fd) { return --open_files, real_close(fd); });
  const sys::Fault stats(
      sys::table.statx, +[](int, const char*, int, unsigned, struct statx*) {
        errno = EIO;
        return -1;
      });
  EXPECT_EQ(open_failure(path), "5: statx " + path + ": Input/output error");
  EXPECT_EQ(open_files, 0);
}

TEST(File, TakesAdviceAndReturnsItsErrno) {
  const TempFolder folder;
  const File file(folder.write("a", pattern(10'000)));
  for (const Advice advice :
       {Advice::normal, Advice::random, Advice::will_need, Advice::dont_need}) {
    EXPECT_EQ(file.advise(advice), 0);
    EXPECT_EQ(file.advise(advice, 4096, 4096), 0);
  }
  const sys::Fault fault(
      sys::table.fadvise, +[](int, off_t, off_t, int) {
        errno = ENOSYS;
        return -1;
      });
  EXPECT_EQ(file.advise(Advice::random), ENOSYS);
}

ssize_t refuse_now(int, void*, std::size_t, off_t) {
  errno = EOPNOTSUPP;
  return -1;
}

void make_unused_for_days(const std::string& path) {
  const std::time_t days_ago = std::time(nullptr) - 3 * 24 * 3600;
  const timespec times[] = {{days_ago, 0}, {days_ago - 1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

bool used_lately(const std::string& path) {
  struct stat facts {};
  return ::stat(path.c_str(), &facts) == 0 && facts.st_atime > std::time(nullptr) - 3600;
}

TEST(File, LooksUsedToThoseWhoCleanUp) {
  const TempFolder folder;
  const std::string plain = folder.write("plain", pattern(5000));
  make_unused_for_days(plain);
  (void)std::ifstream(plain).get();
  if (!used_lately(plain)) GTEST_SKIP() << "this file system notes no access";
  const std::string path = folder.write("a", pattern(5000));
  make_unused_for_days(path);
  const File file(path);
  EXPECT_TRUE(used_lately(path));
}

TEST(File, AsksAtItsEndWhetherTheFileSystemAnswersAtOnce) {
  static off_t asked_at;
  static ssize_t (*real)(int, void*, std::size_t, off_t);
  const TempFolder folder;
  const File file(folder.write("a", pattern(5000)));
  {
    const sys::Fault fault(
        sys::table.pread_now, +[](int fd, void* into, std::size_t size, off_t offset) {
          asked_at = offset;
          EXPECT_LE(real(fd, into, size, offset), 0) << "nothing is read to find out";
          return ssize_t{0};
        });
    real = fault.real();
    EXPECT_TRUE(file.answers_at_once());
    EXPECT_EQ(asked_at, 5000);
  }
  const sys::Fault fault(sys::table.pread_now, &refuse_now);
  EXPECT_FALSE(file.answers_at_once());
}

}  // namespace
}  // namespace lowtide::file_test

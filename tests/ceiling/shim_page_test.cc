#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "ceiling/shim/page.h"
#include "os/shared_memory.h"
#include "os/temp_folder.h"

namespace lowtide::ceiling::shim_page_test {
namespace {

constexpr std::uint64_t kNumber = 0x1234'5678'9abc'def0;

// A descriptor of ours under the kind of path by which guard's page is named.
class Named {
 public:
  explicit Named(int fd) : fd_(fd) {}
  ~Named() { ::close(fd_); }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::string path() const {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_);
  }

 private:
  int fd_;
};

std::vector<char> bytes_of(int fd, std::size_t size) {
  std::vector<char> bytes(size, '?');
  EXPECT_EQ(::pread(fd, bytes.data(), size, 0), static_cast<ssize_t>(size));
  return bytes;
}

// As guard makes it, but with the size, the seals and the number that a test wants.
int memory_file(std::size_t size_bytes, int seals, std::uint64_t number) {
  const int fd = ::memfd_create("a", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(size_bytes)), 0);
  EXPECT_EQ(::pwrite(fd, &number, sizeof number, 0), static_cast<ssize_t>(sizeof number));
  EXPECT_EQ(::fcntl(fd, F_ADD_SEALS, seals), 0);
  return fd;
}

TEST(ShimPage, OpensThePageThatHasTheNumber) {
  const SharedMemory memory(sizeof(Page));
  Page& page = *new (memory.data()) Page;
  page.number = kNumber;
  Page* const opened = open_page(memory.path().c_str(), kNumber);
  ASSERT_NE(opened, nullptr);
  opened->trims.fetch_add(3);
  EXPECT_EQ(page.trims.load(), 3U);
  ::munmap(opened, sizeof(Page));
  EXPECT_EQ(open_page(memory.path().c_str(), kNumber + 1), nullptr);
  EXPECT_EQ(open_page(memory.path().c_str(), 0), nullptr);
}

TEST(ShimPage, LeavesEveryOtherMemoryFileAlone) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  const Named right(memory_file(sizeof(Page), kSeals, kNumber));
  Page* const opened = open_page(right.path().c_str(), kNumber);
  ASSERT_NE(opened, nullptr);
  ::munmap(opened, sizeof(Page));
  const Named others[] = {
      Named(memory_file(sizeof(Page), kSeals, kNumber + 1)),
      Named(memory_file(sizeof(Page), F_SEAL_GROW, kNumber)),
      Named(memory_file(sizeof(Page) + 1, kSeals, kNumber)),
      Named(memory_file(sizeof(Page) - 1, kSeals, kNumber)),
  };
  for (const Named& other : others) {
    EXPECT_EQ(open_page(other.path().c_str(), kNumber), nullptr) << other.fd();
  }
}

TEST(ShimPage, LeavesOtherFilesAloneThoughTheyHoldTheNumber) {
  const TempFolder folder;
  std::string text(sizeof(Page), 'x');
  std::memcpy(text.data(), &kNumber, sizeof kNumber);
  const Named file(::open(folder.write("a", text).c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(open_page(file.path().c_str(), kNumber), nullptr);
  const std::vector<char> after = bytes_of(file.fd(), text.size());
  EXPECT_TRUE(std::equal(text.begin(), text.end(), after.begin()));
  const Named empty(::open(folder.write("b", "").c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_EQ(open_page(empty.path().c_str(), kNumber), nullptr);
}

TEST(ShimPage, DoesNotWaitForTheOtherEndOfAPipe) {
  const TempFolder folder;
  const std::string path = folder / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), S_IRUSR | S_IWUSR), 0);
  EXPECT_EQ(open_page(path.c_str(), kNumber), nullptr);
  EXPECT_EQ(open_page((folder / "missing").c_str(), kNumber), nullptr);
}

}  // namespace
}  // namespace lowtide::ceiling::shim_page_test

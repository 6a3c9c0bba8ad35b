#include "os/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lowtide/error.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "support/thrown.h"

namespace lowtide::files_test {
namespace {

std::vector<Shard> make_shards(const TempFolder& folder, std::uint32_t count) {
  std::vector<Shard> shards;
  for (std::uint32_t i = 0; i < count; ++i) {
    shards.push_back(File(folder.write("s" + std::to_string(i), std::to_string(i))).shard());
  }
  return shards;
}

std::string first_bytes(const File& file) {
  std::vector<std::byte> out(file.shard().size_bytes);
  file.read_exact(0, out);
  return to_text(out);
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    struct rlimit now = before_;
    now.rlim_cur = most;
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  struct rlimit before_ {};
};

// Counts opens for as long as it lives.
class CountOpens {
 public:
  CountOpens() : fault_(sys::table.open, &count) {
    opened = 0;
    real_ = fault_.real();
  }
  static inline int opened;

 private:
  static int count(const char* path, int flags) { return ++opened, real_(path, flags); }
  static inline int (*real_)(const char*, int);
  sys::Fault<int (*)(const char*, int)> fault_;
};

TEST(Files, ReadsTenThousandShardsWithinA256DescriptorLimit) {
  constexpr std::uint32_t kCount = 10'000;
  const TempFolder folder;
  const DescriptorLimit limit(256);
  std::optional<Files> files(make_shards(folder, kCount));
  EXPECT_EQ(files->total_bytes(), 10u + 180 + 2700 + 36'000);
  const std::size_t before = open_descriptors();
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const std::uint32_t shard = i * 7919 % kCount;
    const std::shared_ptr<File> file = files->open(shard);
    ASSERT_EQ(first_bytes(*file), std::to_string(shard));
    (void)file->direct_fd();
  }
  EXPECT_LE(open_descriptors() - before, 128u);
  files.reset();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Files, KeepsTheMostRecentlyUsed) {
  const TempFolder folder;
  Files files(make_shards(folder, 3), 2);
  const CountOpens count;
  (void)files.open(0);
  (void)files.open(1);
  (void)files.open(0);
  (void)files.open(0);
  EXPECT_EQ(CountOpens::opened, 2);
  (void)files.open(2);  // closes 1
  (void)files.open(0);
  EXPECT_EQ(CountOpens::opened, 3);
  (void)files.open(1);
  EXPECT_EQ(CountOpens::opened, 4);
}

TEST(Files, KeepsAHeldFileReadableAfterItLeftTheTable) {
  const TempFolder folder;
  Files files(make_shards(folder, 3), 1);
  const std::shared_ptr<File> held = files.open(0);
  (void)files.open(1);
  (void)files.open(2);
  EXPECT_EQ(first_bytes(*held), "0");
}

TEST(Files, ClosesHalfAndTriesAgainWhenDescriptorsRunOut) {
  static int (*real)(const char*, int);
  static int refusals;
  real = sys::table.open;
  refusals = 0;
  const TempFolder folder;
  Files files(make_shards(folder, 9), 100);
  for (std::uint32_t i = 0; i < 8; ++i) (void)files.open(i);
  const std::size_t before = open_descriptors();
  const sys::Fault fault(
      sys::table.open, +[](const char* path, int flags) {
        if (refusals++ != 0) return real(path, flags);
        errno = EMFILE;
        return -1;
      });
  EXPECT_EQ(first_bytes(*files.open(8)), "8");
  EXPECT_EQ(open_descriptors(), before - 4 + 1);
}

TEST(Files, GivesUpWhenDescriptorsRunOutTwice) {
  const TempFolder folder;
  Files files(make_shards(folder, 1));
  const sys::Fault fault(
      sys::table.open, +[](const char*, int) {
        errno = EMFILE;
        return -1;
      });
  const IoError error = caught<IoError>([&] { (void)files.open(0); }).value();
  EXPECT_EQ(error.err, EMFILE);
  EXPECT_NE(std::string(error.what()).find("ulimit -n"), std::string::npos);
}

TEST(Files, GivesAnErrorAndNeverTheBytesOfAReplacedFile) {
  const TempFolder folder;
  Files files(make_shards(folder, 2), 1);
  (void)files.open(0);
  std::filesystem::rename(folder.write("new", "9"), folder / "s0");
  EXPECT_EQ(first_bytes(*files.open(0)), "0");
  (void)files.open(1);
  EXPECT_EQ(caught<IoError>([&] { (void)files.open(0); }).value().err, ESTALE);
}

TEST(Files, ReadsOnInTheFileThatWasAdopted) {
  const TempFolder folder;
  const std::vector<Shard> shards = make_shards(folder, 2);
  Files files(shards);
  const auto file = std::make_shared<File>(shards[1]);
  const CountOpens count;
  files.adopt(1, file);
  EXPECT_EQ(files.open(1), file);
  files.adopt(1, file);
  EXPECT_EQ(files.open(1), file);
  EXPECT_EQ(CountOpens::opened, 0);
  EXPECT_THROW(files.adopt(0, file), IoError);
}

TEST(Files, OpensARelativeNameAlsoFromAnotherFolder) {
  const TempFolder folder;
  (void)folder.write("a", "here");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  Files files({File("a").shard()});
  std::filesystem::current_path(before);
  std::string text(4, ' ');
  files.open(0)->read_exact(0, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "here");
}

TEST(Files, RefusesAShardThatIsNotThere) {
  const TempFolder folder;
  Files files(make_shards(folder, 2));
  EXPECT_THROW((void)files.open(2), std::out_of_range);
}

TEST(Files, NoticesTruncationAndRewritingOfOpenFiles) {
  const TempFolder folder;
  Files files(make_shards(folder, 12), 4);
  for (std::uint32_t i = 8; i < 12; ++i) (void)files.open(i);
  EXPECT_NO_THROW(files.verify_open());

  std::ofstream(folder / "s9", std::ios::app) << "grown";
  EXPECT_THROW(files.verify_open(), IoError);
  for (std::uint32_t i = 0; i < 4; ++i) (void)files.open(i);  // closes the others
  EXPECT_NO_THROW(files.verify_open());

  (void)files.open(10);
  std::filesystem::resize_file(folder / "s10", 1);
  EXPECT_EQ(
      thrown<FormatError>([&] { files.verify_open(); }),
      (folder / "s10") + ": the file was truncated since it was opened: expected 2 bytes, found 1");
}

TEST(Files, ServesManyThreadsWithFewDescriptors) {
  const TempFolder folder;
  Files files(make_shards(folder, 40), 4);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&files, t] {
      for (std::uint32_t i = 0; i < 1000; ++i) {
        const std::uint32_t shard = (i * 7 + t * 3) % 40;
        EXPECT_EQ(first_bytes(*files.open(shard)), std::to_string(shard));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace lowtide::files_test

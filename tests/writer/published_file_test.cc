#include "writer/published_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lowtide/error.h"
#include "os/as_nobody.h"
#include "os/memory.h"
#include "os/temp_folder.h"
#include "support/forked.h"
#include "support/thrown.h"
#include "writer/faulty_calls.h"

namespace lowtide::published_file_test {
namespace {

using Start = PublishedFile::Start;
using Names = std::set<std::string>;

constexpr std::uint64_t kChunkBytes = 64 << 10;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

void write_whole_text(const std::string& path, const std::string& text) {
  PublishedFile file(path, Start::anew, kChunkBytes);
  file.write(0, as_bytes(text));
  file.publish();
}

std::string refusal(const std::string& path, Start start = Start::anew) {
  const auto error = caught<IoError>([&] { PublishedFile(path, start, kChunkBytes); });
  return error ? std::to_string(error->err) + " " + error->op + " " + error->path : "opened";
}

TEST(PublishedFile, AppearsWholeUnderItsName) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  {
    PublishedFile file(path, Start::anew, kChunkBytes);
    file.write(3, as_bytes("defg"));
    file.write(0, as_bytes("abc"));
    EXPECT_EQ(names_in(folder.path()), Names{".a.npy.lowtide-part"});
    file.publish();
    EXPECT_TRUE(file.published());
    EXPECT_EQ(names_in(folder.path()), Names{"a.npy"});
  }
  EXPECT_EQ(file_text(path), "abcdefg");
}

TEST(PublishedFile, LeavesTheOldFileUnlessItIsPublished) {
  const TempFolder folder;
  const std::string path = folder.write("a", "old");
  {
    PublishedFile file(path, Start::anew, kChunkBytes);
    file.write(0, as_bytes("new and longer"));
  }
  EXPECT_EQ(file_text(path), "old");
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

TEST(PublishedFile, WritesEveryByteInChunksAndAtAnyAlignment) {
  const TempFolder folder;
  const std::string text = pattern(3'000'017);
  const std::string path = folder / "a";
  {
    PublishedFile file(path, Start::anew, kChunkBytes);
    const Memory aligned(text.size() + 4096);
    std::copy(text.begin(), text.end(), reinterpret_cast<char*>(aligned.data() + 128));
    file.resize(128 + text.size());
    // Whole blocks, which bypass the page cache, then single bytes of any address.
    file.write(128, aligned.bytes().subspan(128, 1'000'000));
    for (std::size_t at = 1'000'000; at < text.size(); at += 70'001) {
      file.write(128 + at,
                 as_bytes(text).subspan(at, std::min<std::size_t>(70'001, text.size() - at)));
    }
    file.publish();
  }
  EXPECT_EQ(file_text(path), std::string(128, '\0') + text);
}

TEST(PublishedFile, IsWrittenByManyThreads) {
  const TempFolder folder;
  const std::string text = pattern(4 << 20);
  PublishedFile file(folder / "a", Start::anew, kChunkBytes);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t at = thread * 10'007; at < text.size(); at += 4 * 10'007)
        file.write(at, as_bytes(text).subspan(at, std::min<std::size_t>(10'007, text.size() - at)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  file.publish();
  EXPECT_EQ(file_text(folder / "a"), text);
}

TEST(PublishedFile, GoesOnInPlace) {
  const TempFolder folder;
  const std::string path = folder.write("a", "first");
  {
    PublishedFile file(path, Start::go_on, kChunkBytes);
    EXPECT_EQ(file.size_bytes(), 5u);
    std::vector<std::byte> start(5);
    file.read_exact(0, start);
    EXPECT_EQ(to_text(start), "first");
    file.write(5, as_bytes(" second"));
    file.publish();
  }
  EXPECT_EQ(file_text(path), "first second");
  EXPECT_EQ(refusal(folder / "none", Start::go_on), "2 open " + (folder / "none"));
  EXPECT_EQ(refusal(folder / "none", Start::go_on_any), "opened");
}

TEST(PublishedFile, HasOneWriter) {
  const TempFolder folder;
  const std::string path = folder / "a";
  const std::string busy = std::to_string(EBUSY) + " create " + path;
  PublishedFile file(path, Start::anew, kChunkBytes);
  EXPECT_EQ(refusal(path), busy);
  file.publish();  // from now on the lock is on the file of that name
  EXPECT_EQ(refusal(path), busy);
  EXPECT_EQ(refusal(path, Start::go_on), busy);
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

TEST(PublishedFile, RemovesWhatACrashLeft) {
  const TempFolder folder;
  folder.write(".a.lowtide-part", "half of it");
  write_whole_text(folder / "a", "new");
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
  folder.write(".a.lowtide-part", "half of it");
  { const PublishedFile file(folder / "a", Start::go_on, kChunkBytes); }
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
  EXPECT_EQ(file_text(folder / "a"), "new");
}

TEST(PublishedFile, RefusesTargetsAtOnce) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "sub");
  EXPECT_EQ(refusal(folder / "sub"), std::to_string(EISDIR) + " create " + (folder / "sub"));
  EXPECT_EQ(refusal(folder / "fifo"), std::to_string(EINVAL) + " create " + (folder / "fifo"));
  EXPECT_EQ(refusal(folder / "none/a"), std::to_string(ENOENT) + " create " + (folder / "none/a"));
  const std::string path = folder.write("file", "x");
  EXPECT_EQ(refusal(path + "/a"), std::to_string(ENOTDIR) + " create " + path + "/a");
  EXPECT_EQ(as_nobody([&] { return refusal(folder / "a"); }),
            std::to_string(EACCES) + " create " + (folder / "a"));
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  EXPECT_EQ(as_nobody([&] { return refusal(path); }), std::to_string(EACCES) + " create " + path);
  EXPECT_THROW(PublishedFile("", Start::anew, kChunkBytes), std::invalid_argument);
  EXPECT_THROW(PublishedFile(folder / "sub/", Start::anew, kChunkBytes), std::invalid_argument);
}

TEST(PublishedFile, KeepsALinkAndThePermissions) {
  const TempFolder folder;
  const std::string path = folder.write("real", "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  std::filesystem::create_symlink("real", folder / "link");
  write_whole_text(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(file_text(path), "new");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
}

TEST(PublishedFile, HasANameOfAnyLength) {
  const TempFolder folder;
  const std::string name(255, 'x');
  write_whole_text(folder / name, "new");
  EXPECT_EQ(names_in(folder.path()), Names{name});
}

TEST(PublishedFile, IsDurableBeforeItHasItsNameAndItsFolderAfter) {
  const TempFolder folder;
  const FaultyCalls calls;
  write_whole_text(folder / "a", pattern(200'000));
  Names seen;
  std::vector<std::string> order;
  for (const std::string& call : FaultyCalls::log()) {
    if (call == "pwrite" && (order.empty() || order.back() != call)) order.push_back(call);
    if (call == "fsync" || call == "rename") order.push_back(call);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"pwrite", "fsync", "rename", "fsync"}));
}

TEST(PublishedFile, IsOldOrNewAfterTroubleAtAnyCall) {
  const QuickSyncs syncs;
  const TempFolder folder;
  const std::string path = folder / "a";
  const std::string text = pattern(200'000);
  expect_all_or_nothing(
      folder.path(), [&] { folder.write("a", "old"); }, [&] { write_whole_text(path, text); },
      [&](bool whole) {
        const std::string found = file_text(path);
        EXPECT_TRUE(found == text || (!whole && found == "old")) << found.size();
      });
}

TEST(PublishedFile, IsNotPublishedAfterAFailedWrite) {
  const TempFolder folder;
  PublishedFile file(folder / "a", Start::anew, kChunkBytes);
  {
    const sys::Fault fault(
        sys::table.pwrite, +[](int, const void*, std::size_t, off_t) -> ssize_t {
          errno = ENOSPC;
          return -1;
        });
    EXPECT_THROW(file.write(0, as_bytes("abc")), IoError);
  }
  const IoError error = caught<IoError>([&] { file.publish(); }).value();
  EXPECT_EQ(error.err, ENOSPC);
  EXPECT_NE(std::string(error.what()).find("an earlier write failed"), std::string::npos);
  EXPECT_FALSE(file.published());
}

TEST(PublishedFile, WorksWithoutLocksAndRangesAndDirectWrites) {
  const TempFolder folder;
  const sys::Fault locks(
      sys::table.flock, +[](int, int) {
        errno = ENOLCK;
        return -1;
      });
  const sys::Fault ranges(
      sys::table.sync_file_range, +[](int, off_t, off_t, unsigned) {
        errno = ENOSYS;
        return -1;
      });
  folder.write(".a.lowtide-part", "stale");
  const std::string text = pattern(300'000);
  write_whole_text(folder / "a", text);
  EXPECT_EQ(file_text(folder / "a"), text);
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

TEST(PublishedFile, BelongsToTheProcessThatMadeIt) {
  const TempFolder folder;
  auto file = std::make_unique<PublishedFile>(folder / "a", Start::anew, kChunkBytes);
  expect_success(start_child([&] {
    const std::string said = thrown<std::invalid_argument>([&] { file->publish(); });
    file.reset();
    return said.find("forked") == std::string::npos ? 1 : 0;
  }));
  file->publish();
  EXPECT_EQ(names_in(folder.path()), Names{"a"});
}

}  // namespace
}  // namespace lowtide::published_file_test

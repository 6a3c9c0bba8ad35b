#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "lowtide/error.h"
#include "lowtide/writer.h"
#include "os/temp_folder.h"
#include "support/forked.h"
#include "support/npy_file.h"
#include "support/thrown.h"
#include "writer/faulty_calls.h"
#include "writer/written_array.h"

namespace lowtide::writer_trouble_test {
namespace {

using Names = std::set<std::string>;

TEST(WriterTrouble, IsOldOrNewAfterTroubleAtAnyCallOfCreate) {
  const QuickSyncs syncs;
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  const std::string text = pattern(120'000);
  expect_all_or_nothing(
      folder.path(), [&] { folder.write("a.npy", npy_text("|u1", {1, 3}, "old")); },
      [&] {
        ArrayWriter writer = ArrayWriter::create(path, triples(50'000));
        writer.write(7, 40'000, bytes_of(text));
        writer.close();
      },
      [&](bool whole) {
        const std::string found = written(path);
        EXPECT_TRUE(found == "(50000, 3) " + zeros(21) + text + zeros(150'000 - 120'000 - 21) ||
                    (!whole && found == "(1, 3) old"))
            << found.size();
      });
}

TEST(WriterTrouble, HasWholeCommitsAfterTroubleAtAnyCallOfAppend) {
  const QuickSyncs syncs;
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  const std::string text = pattern(60'000);
  const auto rows = [&](std::size_t count) { return text.substr(0, count * 3); };
  // Goes on wherever the file ends, as a program does after a crash.
  const auto grow = [&] {
    ArrayWriter writer = ArrayWriter::create(path, triples(std::nullopt, true));
    while (writer.next_row() < 20'000) {
      const std::uint64_t row = writer.next_row();
      writer.append(9'900, bytes_of(text).subspan(row * 3, 9'900 * 3));
      if (row < 10'000) writer.commit();
    }
    writer.close();
  };
  expect_all_or_nothing(
      folder.path(), [&] { folder.write("a.npy", npy_text("|u1", {200, 3}, rows(200))); }, grow,
      [&](bool whole) {
        const std::string found = written(path);
        EXPECT_TRUE(
            found == "(20000, 3) " + rows(20'000) ||
            (!whole && (found == "(200, 3) " + rows(200) || found == "(10100, 3) " + rows(10'100))))
            << found.substr(0, 12);
      });
}

TEST(WriterTrouble, LeavesNothingAfterAFullDisk) {
  const TempFolder folder;
  const std::string path = folder / "a.npy";
  {
    ArrayWriter writer = ArrayWriter::create(path, triples());
    append_text(writer, "abc");
    const sys::Fault fault(
        sys::table.pwrite, +[](int, const void*, std::size_t, off_t) -> ssize_t {
          errno = ENOSPC;
          return -1;
        });
    EXPECT_EQ(caught<IoError>([&] { writer.close(); })->err, ENOSPC);
    EXPECT_TRUE(writer.closed());
  }
  EXPECT_EQ(names_in(folder.path()), Names{});
}

TEST(WriterTrouble, RefusesEveryCallAfterAFailedWrite) {
  const TempFolder folder;
  static const auto real = sys::table.pwrite;
  static std::atomic<bool> full;
  full = true;
  // Until the writer has gone: its thread may still be writing when the first call has failed.
  const sys::Fault fault(
      sys::table.pwrite, +[](int fd, const void* data, std::size_t size, off_t offset) -> ssize_t {
        if (!full) return real(fd, data, size, offset);
        errno = ENOSPC;
        return -1;
      });
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples());
  EXPECT_EQ(caught<IoError>([&] {
              for (int i = 0; i < 10; ++i) append_text(writer, std::string(30 << 20, 'a'));
            })->err,
            ENOSPC);
  full = false;
  // Room again, and few bytes: but what was lost is lost.
  EXPECT_EQ(caught<IoError>([&] { append_text(writer, "abc"); })->err, ENOSPC);
  EXPECT_EQ(caught<IoError>([&] { writer.commit(); })->err, ENOSPC);
  EXPECT_EQ(caught<IoError>([&] { writer.close(); })->err, ENOSPC);
  EXPECT_EQ(names_in(folder.path()), Names{});
}

TEST(WriterTrouble, BelongsToTheProcessThatMadeIt) {
  const TempFolder folder;
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples());
  append_text(writer, "abc");
  expect_success(start_child([&] {
    const std::string said = thrown<std::invalid_argument>([&] { append_text(writer, "abc"); });
    const ArrayWriter gone = std::move(writer);
    return said.find("forked") != std::string::npos && gone.closed() ? 0 : 1;
  }));
  writer.close();
  EXPECT_EQ(written(folder / "a.npy"), "(1, 3) abc");
}

}  // namespace
}  // namespace lowtide::writer_trouble_test

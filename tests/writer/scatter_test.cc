#include "writer/scatter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lowtide/writer.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "writer/written_array.h"

namespace lowtide::scatter_test {
namespace {

using Offsets = std::vector<std::uint64_t>;

// Where the file was written, and where it was read ahead.
struct Seen {
  Offsets writes, reads;
};
Seen seen;
sys::Table real;

class SeenCalls {
 public:
  SeenCalls() { seen = {}; }

 private:
  const sys::Table before_ = real = sys::table;  // before it changes
  sys::Fault<ssize_t (*)(int, const void*, std::size_t, off_t)> pwrite_{
      sys::table.pwrite, +[](int fd, const void* from, std::size_t size, off_t offset) {
        seen.writes.push_back(static_cast<std::uint64_t>(offset));
        return real.pwrite(fd, from, size, offset);
      }};
  sys::Fault<int (*)(int, off_t, off_t, int)> fadvise_{
      sys::table.fadvise, +[](int fd, off_t offset, off_t size, int advice) {
        if (advice == POSIX_FADV_WILLNEED)
          for (off_t at = offset; at < offset + size; at += 4096)
            seen.reads.push_back(static_cast<std::uint64_t>(at));
        return real.fadvise(fd, offset, size, advice);
      }};
};

struct Rig {
  explicit Rig(std::uint64_t memory_bytes = 1 << 20, std::uint64_t size_bytes = 1 << 20)
      : budget(memory_bytes), text(size_bytes, '\0') {
    file.resize(size_bytes);
  }
  [[nodiscard]] bool add(std::uint64_t offset, const std::string& bytes) {
    text.replace(offset, bytes.size(), bytes);
    return scatter.add(offset, bytes_of(bytes));
  }
  [[nodiscard]] std::string found() {
    std::string all(text.size(), '\0');
    file.read_exact(0, std::as_writable_bytes(std::span(all)));
    return all;
  }

  TempFolder folder;
  Budget budget;
  PublishedFile file{folder / "a", PublishedFile::Start::anew, 64 << 10};
  Scatter scatter{file, budget};
  std::string text;
};

// Offsets 0, step, 2 * step, ... in an order of chance.
Offsets scattered(std::size_t count, std::uint64_t step) {
  Offsets offsets;
  for (std::size_t i = 0; i < count; ++i) offsets.push_back(i * step);
  std::shuffle(offsets.begin(), offsets.end(), std::mt19937(1));
  return offsets;
}

TEST(Scatter, WritesFarPiecesInFileOrderAndReadsTheirPagesAhead) {
  Rig rig(1 << 20, 64 << 20);
  const SeenCalls calls;
  for (const std::uint64_t offset : scattered(600, 100'000))
    ASSERT_TRUE(rig.add(offset, pattern(648)));
  EXPECT_TRUE(seen.writes.empty());
  rig.scatter.flush();
  EXPECT_EQ(seen.writes.size(), 600u);
  EXPECT_TRUE(std::ranges::is_sorted(seen.writes));
  EXPECT_TRUE(std::ranges::is_sorted(seen.reads));
  EXPECT_EQ(seen.reads.size(), 600u);
  EXPECT_EQ(rig.scatter.bytes_written(), 600u * 648);
  EXPECT_EQ(rig.found(), rig.text);
}

TEST(Scatter, RewritesNearPiecesTogether) {
  Rig rig;
  rig.file.write(0, bytes_of(rig.text = pattern(1 << 20)));
  const SeenCalls calls;
  for (const std::uint64_t offset : scattered(300, 3'000))
    ASSERT_TRUE(rig.add(offset, std::string(648, 'x')));
  rig.scatter.flush();
  // 300 * 3000 bytes in spans of an eighth of half of the budget: 64 KiB.
  EXPECT_EQ(rig.scatter.writes(), 14u);
  EXPECT_TRUE(seen.reads.empty());
  EXPECT_EQ(rig.found(), rig.text);
}

TEST(Scatter, RewritesOnlyItsOwnBlocks) {
  Rig rig;
  rig.scatter.own_range(10'000, 900'000);
  const Offsets offsets = scattered(300, 3'000);
  for (const std::uint64_t offset : offsets) ASSERT_TRUE(rig.add(offset, std::string(648, 'x')));
  const SeenCalls calls;
  rig.scatter.flush();
  for (const std::uint64_t at : seen.writes) {
    const bool whole = at % 4096 == 0 && at != 0;
    EXPECT_TRUE(!whole || (at >= 12'288 && at < 897'024)) << at;
    EXPECT_TRUE(whole || std::ranges::find(offsets, at) != offsets.end()) << at;
  }
  EXPECT_LT(rig.scatter.writes(), 60u);
  EXPECT_EQ(rig.found(), rig.text);
}

TEST(Scatter, LetsTheLaterOfTwoPiecesWin) {
  Rig rig;
  std::mt19937 random(2);
  for (int i = 0; i < 3000; ++i) {
    const std::string piece(1 + random() % 400, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(rig.add(random() % 20'000, piece));  // most overlap others
  }
  rig.scatter.flush();
  EXPECT_EQ(rig.found(), rig.text);
}

TEST(Scatter, WritesOlderPiecesBeforeNewerBytes) {
  Rig rig;
  ASSERT_TRUE(rig.add(100, "older"));
  ASSERT_TRUE(rig.add(500'000, "other"));
  const SeenCalls calls;
  rig.scatter.write(0, bytes_of(std::string(100, '-')));
  rig.scatter.write(105, bytes_of(std::string(100, '-')));
  EXPECT_EQ(seen.writes, (Offsets{0, 105}));
  rig.scatter.write(102, bytes_of("newer"));
  EXPECT_EQ(seen.writes, (Offsets{0, 105, 100, 500'000, 102}));
  rig.scatter.flush();
  EXPECT_EQ(rig.found().substr(98, 11), "--olnewer--");
}

TEST(Scatter, TakesItsMemoryFromTheBudgetWhenItIsUsed) {
  Rig rig(1 << 20, 4 << 20);
  EXPECT_EQ(rig.budget.free_bytes(), 1u << 20);
  const SeenCalls calls;
  std::uint64_t added = 0;
  while (seen.writes.empty()) ASSERT_TRUE(rig.add(added++ * 1500, pattern(1000)));
  EXPECT_EQ(rig.budget.claims().at(0).what, "scattered rows");
  EXPECT_EQ(rig.budget.claims().at(0).bytes, 512u << 10);
  EXPECT_EQ(added, (448u << 10) / 1016 + 1);  // as many as there is room for, and one
  rig.scatter.flush();
  EXPECT_EQ(rig.found(), rig.text);
  EXPECT_FALSE(rig.add(0, pattern(600 << 10)));
}

TEST(Scatter, RefusesWhatABudgetHasNoRoomFor) {
  Rig rig;
  const Claim most = rig.budget.claim((1 << 20) - (32 << 10), "others");
  EXPECT_FALSE(rig.scatter.add(0, bytes_of("abc")));
}

TEST(Scatter, GathersRowsOfManyCallsAndThreads) {
  const TempFolder folder;
  const std::uint64_t rows = 20'000;
  const std::string all = pattern(rows * 3);
  std::vector<std::int64_t> order(rows);
  for (std::uint64_t i = 0; i < rows; ++i) order[i] = static_cast<std::int64_t>(i);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples(rows));
  const auto write = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const auto row = static_cast<std::uint64_t>(order[i]);
      if (i % 2 == 0) {
        writer.write(row, 1, bytes_of(all).subspan(row * 3, 3));
      } else {
        writer.write_rows(std::span(&order[i], 1), bytes_of(all).subspan(row * 3, 3));
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { write(i * rows / 4, (i + 1) * rows / 4); });
  for (std::thread& thread : threads) thread.join();
  const WriteStats stats = writer.stats();
  EXPECT_EQ(stats.writes, 0u);  // all of it still waits
  EXPECT_EQ(stats.memory_claims.back().first, "scattered rows");
  std::uint64_t held = 0;
  for (const auto& [name, bytes] : stats.memory_claims) held += bytes;
  EXPECT_LE(held, stats.memory_limit_bytes);
  writer.close();
  EXPECT_EQ(written(folder / "a.npy"), "(20000, 3) " + all);
}

TEST(Scatter, LosesNothingWhileOthersWriteBlocks) {
  const TempFolder folder;
  constexpr std::uint64_t kZone = 1000;  // rows; blocks and single rows take turns
  const std::uint64_t rows = 60 * kZone;
  const std::string all = pattern(rows * 100);
  CreateOptions options = triples(rows);
  options.row_shape = {{100}};
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", options);
  const auto put = [&](std::uint64_t first, std::uint64_t count) {
    writer.write(first, count, bytes_of(all).subspan(first * 100, count * 100));
  };
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t zone = 2 * thread; zone < 60; zone += 4) put(zone * kZone, kZone);
    });
    threads.emplace_back([&, thread] {
      for (const std::uint64_t i : scattered(15 * kZone, 1)) {
        const std::uint64_t zone = 2 * thread + 1 + i / kZone * 4;
        put(zone * kZone + i % kZone, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  writer.close();
  EXPECT_TRUE(written(folder / "a.npy") == "(60000, 100) " + all);
}

TEST(Scatter, KeepsTheOrderOfBlocksAndSingleRows) {
  const TempFolder folder;
  const std::uint64_t rows = 50'000;
  std::string all(rows * 3, '\0');
  ArrayWriter writer = ArrayWriter::create(folder / "a.npy", triples(rows));
  std::mt19937 random(4);
  const auto put = [&](std::uint64_t first, std::uint64_t count, char letter) {
    const std::string text(count * 3, letter);
    all.replace(first * 3, text.size(), text);
    writer.write(first, count, bytes_of(text));
  };
  for (int turn = 0; turn < 60; ++turn) {
    for (int i = 0; i < 200; ++i) put(random() % rows, 1, static_cast<char>('a' + random() % 26));
    const std::uint64_t count = 1 + random() % 20'000;
    put(random() % (rows - count), count, static_cast<char>('A' + turn % 26));
  }
  writer.close();
  EXPECT_EQ(written(folder / "a.npy"), "(50000, 3) " + all);
}

}  // namespace
}  // namespace lowtide::scatter_test

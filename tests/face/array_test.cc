#include "lowtide/array.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/data_file.h"
#include "support/npy_file.h"
#include "support/thrown.h"

namespace lowtide::array_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kRows = 1003, kColumns = 37, kRowBytes = kColumns * 4;

class ArrayTest : public testing::Test {
 protected:
  [[nodiscard]] std::string row(std::uint64_t index) const {
    return data_.substr(index * kRowBytes, kRowBytes);
  }
  void expect_batch(const Batch& batch) const {
    for (std::size_t i = 0; i < batch.index().size(); ++i) {
      ASSERT_EQ(std::memcmp(batch.column(0).data() + i * kRowBytes, row(batch.index()[i]).data(),
                            kRowBytes),
                0)
          << "step " << batch.step() << ", row " << i;
    }
  }

  const TempFolder folder_;
  const std::string data_ = pattern(kRows * kRowBytes);
  const std::string npy_ = folder_.write("m.npy", npy_text("<f4", {kRows, kColumns}, data_));
};

std::span<std::byte> bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

std::string read_all(const Array& array) {
  std::string out(array.rows() * array.row_bytes(), '\0');
  array.read(0, array.rows(), bytes_of(out));
  return out;
}

TEST_F(ArrayTest, OpensTheBytesOfANpyFileAsTheyAreWhereAsked) {
  const std::uint64_t all = std::filesystem::file_size(npy_);
  const Array bytes = Array::open(npy_, {.dtype = "uint8", .headerless = true});
  EXPECT_EQ(bytes.format(), "raw");
  EXPECT_EQ(bytes.rows(), all);
  EXPECT_EQ(read_all(bytes), plain_read(npy_, 0, all));
  EXPECT_THROW((void)Array::open(npy_, {.headerless = true}), FormatError);
}

TEST_F(ArrayTest, OpensNpyAndRaw) {
  const Array npy = Array::open(npy_);
  EXPECT_EQ(npy.format(), "npy");
  EXPECT_EQ(npy.dtype().descr(), "'<f4'");
  EXPECT_EQ(npy.shape(), (std::vector<std::uint64_t>{kRows, kColumns}));
  EXPECT_EQ(npy.rows(), kRows);
  EXPECT_EQ(npy.row_bytes(), kRowBytes);
  EXPECT_EQ(npy.paths(), std::vector<std::string>{npy_});
  EXPECT_EQ(npy.memory_bytes(), default_memory_bytes());
  EXPECT_FALSE(npy.fortran_order());
  EXPECT_EQ(read_all(npy), data_);
  const std::string raw = folder_.write("m.f32", "header!" + data_);
  EXPECT_EQ(read_all(Array::open(raw, {.dtype = "float32",
                                       .shape = {{kRows, kColumns}},
                                       .offset_bytes = 7,
                                       .read = {.memory_bytes = kMiB}})),
            data_);
}

TEST_F(ArrayTest, OpensTheArraysOfAFolder) {
  std::filesystem::create_directory(folder_ / "parts");
  const std::uint64_t first = 400;
  folder_.write("parts/part-1.npy",
                npy_text("<f4", {kRows - first, kColumns}, data_.substr(first * kRowBytes)));
  folder_.write("parts/part-0.npy",
                npy_text("<f4", {first, kColumns}, data_.substr(0, first * kRowBytes)));
  folder_.write("parts/.hidden.npy", "no array");
  folder_.write("parts/notes.txt", "no array");
  EXPECT_EQ(read_all(Array::open(folder_ / "parts")), data_);
  folder_.write("parts/index.json", R"({"version": 2, "shards": []})");
  EXPECT_THROW((void)Array::open(folder_ / "parts"), FormatError);
}

TEST_F(ArrayTest, JoinsSeveralFilesAndSkipsEmptyOnes) {
  const std::uint64_t first = 400;
  const std::vector<std::string> paths{
      folder_.write("p0.npy",
                    npy_text("<f4", {first, kColumns}, data_.substr(0, first * kRowBytes))),
      folder_.write("p1.npy", ""),
      folder_.write("p2.npy",
                    npy_text("<f4", {kRows - first, kColumns}, data_.substr(first * kRowBytes)))};
  const Array list = Array::open(paths);
  EXPECT_EQ(list.paths(), (std::vector<std::string>{paths[0], paths[2]}));
  EXPECT_EQ(read_all(list), data_);
  EXPECT_EQ(read_all(Array::open(folder_ / "p?.npy")), data_);
  std::vector<std::string> flat{folder_.write("a.f32", data_.substr(0, first * kRowBytes)),
                                folder_.write("b.f32", data_.substr(first * kRowBytes))};
  EXPECT_EQ(read_all(Array::open(flat, {.dtype = "<f4", .shape = {{kRows, kColumns}}})), data_);
}

TEST_F(ArrayTest, TakesANpyFileForRawWhereItIsToldTo) {
  const std::string text = npy_text("<f4", {kRows, kColumns}, data_);
  const std::string path = folder_.write("raw.npy", text);
  const std::uint64_t header = text.size() - data_.size();
  OpenOptions options{.dtype = "|u1",
                      .shape = {{kRows - 1, kRowBytes}},
                      .offset_bytes = header + kRowBytes,
                      .headerless = true};
  EXPECT_EQ(read_all(Array::open(path, options)), data_.substr(kRowBytes));
  options.headerless = false;
  EXPECT_THROW((void)Array::open(path, options), FormatError);
}

TEST_F(ArrayTest, ReadsFortranOrderAsCOrder) {
  std::string columns(data_.size(), '\0');
  for (std::uint64_t r = 0; r < kRows; ++r) {
    for (std::uint64_t c = 0; c < kColumns; ++c) {
      std::memcpy(&columns[(c * kRows + r) * 4], &data_[(r * kColumns + c) * 4], 4);
    }
  }
  const Array array =
      Array::open(folder_.write("f.npy", npy_text("<f4", {kRows, kColumns}, columns, true)));
  EXPECT_TRUE(array.fortran_order());
  EXPECT_EQ(read_all(array), data_);
  EXPECT_EQ(array.stats().layout.find("F: "), 0U);
  std::string out(3 * kRowBytes, '\0');
  const std::vector<std::int32_t> some{1002, 0, 1002};
  array.take(some, bytes_of(out));
  EXPECT_EQ(out, row(1002) + row(0) + row(1002));
  EXPECT_THROW(array.take_part(some, 0, 4, bytes_of(out)), std::invalid_argument);
  auto batches = array.batches({.batch_size = 100, .order = OrderKind::shuffle});
  while (const auto batch = batches.next()) expect_batch(batch);
}

TEST_F(ArrayTest, TakesRowsAndPartsOfRows) {
  for (const char* engine : {"pread", "auto", "memory"}) {
    const Array array =
        Array::open(npy_, {.read = {.memory_bytes = kMiB, .engine = parse_engine(engine)}});
    std::vector<std::int64_t> some{5, 1002, 5, 0, 17};
    for (std::int64_t i = 0; i < 9000; ++i)
      some.push_back(i * 37 % static_cast<std::int64_t>(kRows));
    std::string out(some.size() * kRowBytes, '\0');
    array.take(some, bytes_of(out));
    std::string parts(some.size() * 10, '\0');
    array.take_part(some, 13, 10, bytes_of(parts));
    for (std::size_t i = 0; i < some.size(); ++i) {
      const std::string whole = row(static_cast<std::uint64_t>(some[i]));
      ASSERT_EQ(out.substr(i * kRowBytes, kRowBytes), whole);
      ASSERT_EQ(parts.substr(i * 10, 10), whole.substr(13, 10));
    }
    array.take(std::span<const std::uint64_t>{}, {});
    array.read(kRows, 0, {});
  }
}

TEST_F(ArrayTest, RefusesMemoryOfAnotherSize) {
  const Array array = Array::open(npy_);
  const std::vector<std::int64_t> some{3, 1};
  for (const std::size_t bytes :
       {std::size_t{0}, 2 * kRowBytes - 1, 2 * kRowBytes + 1, 3 * kRowBytes}) {
    std::string out(bytes, '\0');
    EXPECT_THROW(array.read(0, 2, bytes_of(out)), std::invalid_argument) << bytes;
    EXPECT_THROW(array.take(some, bytes_of(out)), std::invalid_argument) << bytes;
    EXPECT_THROW(array.take_part(some, 0, 7, bytes_of(out)), std::invalid_argument) << bytes;
  }
}

TEST_F(ArrayTest, RefusesRowsThatAreNotThere) {
  const Array array = Array::open(npy_);
  std::string out(2 * kRowBytes, '\0');
  const auto text_of = [&](std::int64_t index) -> std::string {
    const std::vector<std::int64_t> some{0, index};
    return thrown<std::out_of_range>([&] { array.take(some, bytes_of(out)); });
  };
  EXPECT_EQ(text_of(1003), "index 1003 is out of bounds for axis 0 with size 1003");
  EXPECT_EQ(text_of(-1), "index -1 is out of bounds for axis 0 with size 1003");
  EXPECT_THROW(array.read(1000, 4, bytes_of(out)), std::out_of_range);
  EXPECT_THROW(array.read(1, ~std::uint64_t{0}, bytes_of(out)), std::out_of_range);
  const std::vector<std::uint32_t> first{0};
  EXPECT_THROW(array.take_part(first, kRowBytes - 1, 2, bytes_of(out)), std::out_of_range);
  EXPECT_THROW(array.take_part(first, 1, ~std::uint64_t{0}, bytes_of(out)), std::out_of_range);
  const std::vector<std::uint32_t> beyond{1, 2000};
  EXPECT_THROW((void)array.batches({.rows = std::span<const std::uint32_t>(beyond)}),
               std::out_of_range);
}

TEST_F(ArrayTest, DeliversEveryRowOnceOverAllRanks) {
  for (const std::uint64_t memory_bytes : {200'000UL, kMiB, 64 * kMiB}) {
    const Array array = Array::open(npy_, {.read = {.memory_bytes = memory_bytes}});
    std::vector<int> times(kRows, 0);
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
      auto batches = array.batches({.batch_size = 64,
                                    .order = OrderKind::shuffle,
                                    .seed = 9,
                                    .epoch = 4,
                                    .rank = rank,
                                    .world_size = 3});
      std::uint64_t step = 0;
      while (const auto batch = batches.next()) {
        EXPECT_EQ(batch.step(), step++);
        EXPECT_EQ(batch.epoch(), 4U);
        EXPECT_EQ(batches.position(), step);
        expect_batch(batch);
        for (const std::uint64_t sample : batch.index()) ++times.at(sample);
      }
      EXPECT_EQ(step, batches.steps());
      EXPECT_FALSE(batches.next()) << "and stays at the end";
    }
    EXPECT_EQ(times, std::vector<int>(kRows, 1));
  }
}

TEST_F(ArrayTest, DeliversAnOrderOfTheUser) {
  const Array array = Array::open(npy_);
  const std::vector<std::int64_t> mine{7, 7, 1002, 0, 3};
  auto batches = array.batches({.batch_size = 2, .rows = std::span<const std::int64_t>(mine)});
  EXPECT_EQ(batches.steps(), 3U);
  std::vector<std::int64_t> seen;
  while (const auto batch = batches.next()) {
    expect_batch(batch);
    for (const std::uint64_t s : batch.index()) seen.push_back(static_cast<std::int64_t>(s));
  }
  EXPECT_EQ(seen, mine);
}

TEST_F(ArrayTest, SeeksToEveryStepAsIfUninterrupted) {
  const Array array = Array::open(npy_, {.read = {.memory_bytes = kMiB}});
  const BatchOptions options{.batch_size = 100, .order = OrderKind::shuffle, .seed = 2};
  std::vector<std::vector<std::uint64_t>> whole;
  auto once = array.batches(options);
  while (const auto batch = once.next()) {
    whole.emplace_back(batch.index().begin(), batch.index().end());
  }
  auto batches = array.batches(options);
  for (std::uint64_t start = 0; start <= whole.size(); ++start) {
    batches.seek(start);
    EXPECT_EQ(batches.position(), start);
    for (std::uint64_t step = start; step < whole.size(); ++step) {
      const auto batch = batches.next();
      ASSERT_TRUE(batch);
      ASSERT_EQ(batch.step(), step);
      ASSERT_TRUE(std::equal(whole[step].begin(), whole[step].end(), batch.index().begin(),
                             batch.index().end()));
      expect_batch(batch);
    }
    EXPECT_FALSE(batches.next());
  }
  EXPECT_THROW(batches.seek(whole.size() + 1), std::out_of_range);
}

TEST_F(ArrayTest, KeepsBatchesValidWhenAllElseIsGone) {
  std::vector<Batch> kept;
  {
    Array array = Array::open(npy_, {.read = {.memory_bytes = kMiB}});
    auto batches = array.batches({.batch_size = 10});
    while (auto batch = batches.next()) kept.push_back(std::move(batch));
    EXPECT_GT(array.stats().held_by_you_bytes, 0U);
    array.close();
  }
  ASSERT_EQ(kept.size(), 101U);
  for (const Batch& batch : kept) expect_batch(batch);
}

TEST_F(ArrayTest, SumsWhatItDidInItsStats) {
  const Array array = Array::open(
      npy_,
      {.read = {.memory_bytes = kMiB, .engine = EngineKind::pread, .cache = CacheMode::keep}});
  EXPECT_EQ(array.stats().bytes_asked, 0U);
  (void)read_all(array);
  auto batches = array.batches({.batch_size = 100, .order = OrderKind::shuffle});
  while (batches.next()) {
  }
  const Stats stats = array.stats();
  EXPECT_EQ(stats.bytes_asked, 2 * data_.size());
  EXPECT_GE(stats.bytes_read, stats.bytes_asked);
  EXPECT_GT(stats.reads, 0U);
  EXPECT_EQ(stats.engine, "pread");
  EXPECT_EQ(stats.engine_reason, "requested");
  EXPECT_EQ(stats.cache, "keep");
  EXPECT_EQ(stats.cache_reason, "requested");
  EXPECT_EQ(stats.layout, "C");
  EXPECT_EQ(stats.memory_limit_bytes, kMiB);
  std::uint64_t claimed = 0;
  for (const auto& [what, bytes] : stats.memory_claims) claimed += bytes;
  EXPECT_GT(claimed, 0U);
  EXPECT_LE(claimed, kMiB);
}

TEST_F(ArrayTest, IsClosedForAllCopiesWhileBatchesGoOn) {
  Array array = Array::open(npy_);
  const Array copy = array;
  auto batches = array.batches({.batch_size = 100});
  array.close();
  array.close();
  EXPECT_TRUE(copy.closed());
  EXPECT_EQ(copy.rows(), kRows) << "what the header says stays known";
  std::string out(kRowBytes, '\0');
  EXPECT_EQ(thrown<std::invalid_argument>([&] { copy.read(0, 1, bytes_of(out)); }),
            npy_ + ": the array is closed");
  EXPECT_THROW((void)copy.stats(), std::invalid_argument);
  EXPECT_THROW((void)copy.batches({}), std::invalid_argument);
  std::uint64_t rows = 0;
  while (const auto batch = batches.next()) rows += batch.index().size();
  EXPECT_EQ(rows, kRows);
}

TEST_F(ArrayTest, ServesManyThreads) {
  // Room for all that four epochs of this length can use, so none depends on what others took.
  const Array array = Array::open(npy_, {.read = {.memory_bytes = 8 * kMiB}});
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      auto batches = array.batches({.batch_size = 20, .order = OrderKind::shuffle, .seed = t});
      std::string out(kRowBytes, '\0');
      while (const auto batch = batches.next()) {
        expect_batch(batch);
        array.read(batch.step(), 1, bytes_of(out));
        EXPECT_EQ(out, row(batch.step()));
        EXPECT_GT(array.stats().bytes_asked, 0U);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ArrayTest, IsReadInARangeForLoop) {
  const Array array = Array::open(npy_, {.read = {.memory_bytes = kMiB}});
  Batches batches = array.batches({.batch_size = 100});
  std::uint64_t rows = 0;
  for (const Batch& batch : batches) {
    expect_batch(batch);
    rows += batch.rows();
    if (batch.step() == 3) break;
  }
  EXPECT_EQ(rows, 400U);
  for (const Batch& batch : batches) rows += batch.rows();
  EXPECT_EQ(rows, kRows) << "a second loop goes on";
  static_assert(std::input_iterator<BatchIterator<Batches>>);
}

TEST_F(ArrayTest, ShufflesUnlessAskedOtherwise) {
  const Array array = Array::open(npy_);
  const Batch batch = array.batches({.batch_size = kRows}).next();
  const Batch again = array.batches({.batch_size = kRows, .order = OrderKind::shuffle}).next();
  EXPECT_FALSE(std::ranges::is_sorted(batch.index()));
  EXPECT_TRUE(std::ranges::equal(batch.index(), again.index()));
}

TEST_F(ArrayTest, EndsAWaitingNextWhenCancelled) {
  const Array array = Array::open(npy_);
  auto batches = array.batches({.batch_size = 1});
  ASSERT_TRUE(batches.next());
  std::thread other([&] { batches.cancel(); });
  other.join();
  std::uint64_t more = 0;
  while (batches.next()) ++more;
  EXPECT_LT(more, kRows - 1) << "only what was ready already";
  EXPECT_FALSE(batches.next_for(std::chrono::milliseconds(1)).value());
}

TEST_F(ArrayTest, MayBeCancelledWhileItsEpochEnds) {
  const Array array = Array::open(npy_);
  for (int round = 0; round < 20; ++round) {
    auto batches = array.batches({.batch_size = kRows});
    ASSERT_TRUE(batches.next());
    std::thread other([&] {
      for (int i = 0; i < 1000; ++i) batches.cancel();
    });
    EXPECT_FALSE(batches.next());
    other.join();
  }
}

std::size_t entries_of(const char* folder) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    count += !entry.path().empty();
  return count;
}

TEST_F(ArrayTest, LeavesNoDescriptorAndNoThreadBehind) {
  const auto cycle = [&](int i) {
    Array array = Array::open(npy_, {.read = {.memory_bytes = i % 2 == 0 ? kMiB : 200'000}});
    std::string out(kRowBytes, '\0');
    array.read(3, 1, bytes_of(out));
    if (i % 4 == 0) {
      auto batches = array.batches({.batch_size = 300, .order = OrderKind::shuffle});
      EXPECT_TRUE(i % 8 != 0 || batches.next());
    }
    if (i % 3 == 0) array.close();
  };
  for (int i = 0; i < 8; ++i) cycle(i);
  const std::size_t descriptors = entries_of("/proc/self/fd"),
                    tasks = entries_of("/proc/self/task");
  for (int i = 0; i < 1000; ++i) cycle(i);
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  // The kernel lists a thread for a moment longer than it takes to join it.
  for (int i = 0; i < 1000 && entries_of("/proc/self/task") > tasks; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LE(entries_of("/proc/self/task"), tasks);
}

}  // namespace
}  // namespace lowtide::array_test

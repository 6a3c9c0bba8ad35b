// Arrays whose files change, whose budget is short, whose process forks, and whose caller errs.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lowtide/array.h"
#include "support/data_file.h"
#include "support/forked.h"
#include "support/npy_file.h"
#include "support/thrown.h"

namespace lowtide::array_trouble_test {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kRows = 40'000, kColumns = 162, kRowBytes = kColumns * 4;  // 24.7 MiB

std::string text_of(const std::string& path, const OpenOptions& options = {}) {
  return thrown([&] { const Array array = Array::open(path, options); });
}

std::span<std::byte> bytes_of(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}

class ArrayTrouble : public testing::Test {
 protected:
  ArrayTrouble()
      : data_(pattern(kRows * kRowBytes)),
        path_(folder_.write("m.npy", npy_text("<f4", {kRows, kColumns}, data_))) {}

  [[nodiscard]] bool right(const Batch& batch) const {
    for (std::size_t i = 0; i < batch.index().size(); ++i) {
      if (std::memcmp(batch.column(0).data() + i * kRowBytes,
                      data_.data() + batch.index()[i] * kRowBytes, kRowBytes) != 0) {
        return false;
      }
    }
    return true;
  }

  const TempFolder folder_;
  const std::string data_;
  const std::string path_;
};

TEST_F(ArrayTrouble, RefusesToLeaveOutAllBatches) {
  const Array array = Array::open(path_, {});
  BatchOptions options{.batch_size = kRows, .world_size = 2, .drop_last = true};
  EXPECT_EQ(thrown<std::invalid_argument>([&] { const Batches batches = array.batches(options); }),
            "drop_last leaves no batch: one step needs batch_size * world_size = 40000 * 2 "
            "rows, but there are 40000; leave drop_last out");
  options.world_size = 1;
  EXPECT_EQ(array.batches(options).steps(), 1U);
}

TEST_F(ArrayTrouble, NamesWhatIsWrongWithAPath) {
  const std::string missing = folder_ / "missing.npy";
  EXPECT_EQ(text_of(missing).find("open " + missing + ": No such file or directory"), 0U)
      << text_of(missing);
  const std::string folder = folder_ / "without_arrays";
  std::filesystem::create_directory(folder);
  EXPECT_NE(text_of(folder).find("Is a directory"), std::string::npos);
  EXPECT_NE(text_of(folder_.write("empty.npy", "")).find("found an empty file"), std::string::npos);
  EXPECT_NE(text_of(folder_.write("cut.npy", npy_text("<f4", {10, 10}, "short"))), "no error");
  EXPECT_THROW((void)Array::open(std::vector<std::string>{}), std::invalid_argument);
}

TEST_F(ArrayTrouble, NamesWhatABudgetIsTooSmallFor) {
  EXPECT_EQ(text_of(path_, {.read = {.memory_bytes = 1024}}),
            "memory: 1 KiB is too small: 648 B for one row + 32 KiB for read buffers = 32.6 KiB; "
            "use at least 33 KiB");
  EXPECT_EQ(text_of(path_, {.read = {.memory_bytes = 33 * 1024}}), "no error");
  const std::string memory =
      text_of(path_, {.read = {.memory_bytes = kMiB, .engine = EngineKind::memory}});
  EXPECT_EQ(memory.find("engine memory: the data takes 24.7 MiB, but a memory of 1 MiB leaves "),
            0U)
      << memory;
  const Array array = Array::open(path_, {.read = {.memory_bytes = kMiB}});
  const std::string text =
      thrown<std::invalid_argument>([&] { (void)array.batches({.batch_size = 10'000}); });
  EXPECT_EQ(text.find("memory: 1 MiB is too small: 128 KiB for read buffers + "), 0U) << text;
  EXPECT_NE(text.find(" for a batch of 10000 rows"), std::string::npos) << text;
}

TEST_F(ArrayTrouble, ListsTheWordsThatItKnows) {
  const auto refused = [](auto parse, const char* word) -> std::string {
    return thrown<std::invalid_argument>([&] { (void)parse(word); });
  };
  EXPECT_EQ(refused(parse_engine, "warp"),
            "engine: unknown value \"warp\"; use one of \"auto\", \"pread\", \"uring\", "
            "\"memory\"");
  EXPECT_EQ(refused(parse_cache, ""),
            "cache: unknown value \"\"; use one of \"auto\", \"keep\", \"drop\"");
  EXPECT_EQ(refused(parse_order, "Shuffle"),
            "order: unknown value \"Shuffle\"; use one of \"shuffle\", \"random\", \"sequential\"");
  EXPECT_EQ(parse_cache("drop"), CacheMode::drop);
  EXPECT_EQ(parse_order("shuffle"), OrderKind::shuffle);
}

TEST_F(ArrayTrouble, RefusesBatchesThatMakeNoSense) {
  const Array array = Array::open(path_);
  EXPECT_THROW((void)array.batches({.batch_size = 0}), std::invalid_argument);
  EXPECT_THROW((void)array.batches({.world_size = 0}), std::invalid_argument);
  EXPECT_THROW((void)array.batches({.rank = 2, .world_size = 2}), std::invalid_argument);
  EXPECT_THROW((void)array.batches({.order = OrderKind::random}), std::invalid_argument);
}

TEST_F(ArrayTrouble, CountsOnWhenTheDataMakesWayForBatches) {
  const Array array = Array::open(path_, {.read = {.memory_bytes = 32 * kMiB}});
  EXPECT_EQ(array.stats().engine, "memory");
  std::string out(100 * kRowBytes, '\0');
  array.read(0, 100, bytes_of(out));
  const Stats before = array.stats();
  EXPECT_GT(before.reads, 0U);
  auto batches = array.batches({.batch_size = 15'000, .order = OrderKind::shuffle});
  EXPECT_NE(array.stats().engine, "memory");
  EXPECT_GE(array.stats().reads, before.reads) << "counts grow";
  EXPECT_GE(array.stats().bytes_read, before.bytes_read);
  while (const auto batch = batches.next()) EXPECT_TRUE(right(batch));
}

TEST_F(ArrayTrouble, GoesOnAfterBatchesThatDidNotFit) {
  const Array array = Array::open(path_, {.read = {.memory_bytes = 30 * kMiB}});
  ASSERT_EQ(array.stats().engine, "memory");
  auto small = array.batches({.batch_size = 1000, .order = OrderKind::shuffle});
  try {
    auto large = array.batches({.batch_size = 20'000});
    EXPECT_TRUE(large.next());
  } catch (const std::invalid_argument& error) {
    EXPECT_EQ(std::string(error.what()).find("memory: "), 0U) << error.what();
  }
  std::string out(kRowBytes, '\0');
  array.read(7, 1, bytes_of(out));
  EXPECT_EQ(out, data_.substr(7 * kRowBytes, kRowBytes));
  EXPECT_GT(array.stats().bytes_asked, 0U);
  while (const auto batch = small.next()) ASSERT_TRUE(right(batch));
}

TEST_F(ArrayTrouble, MakesBatchesInSeveralThreadsAtOnce) {
  const Array array = Array::open(path_, {.read = {.memory_bytes = 8 * kMiB}});
  // Four short epochs use a part of the budget at most, so none depends on what others left.
  std::vector<std::uint32_t> some(400);
  for (std::uint32_t i = 0; i < some.size(); ++i) some[i] = i * 7919 % std::uint32_t{kRows};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        try {
          auto batches = array.batches(
              {.batch_size = 100, .rows = std::span<const std::uint32_t>(some), .seed = t});
        } catch (const std::invalid_argument& error) {
          if (refused++ == 0) ADD_FAILURE() << error.what();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, 0);
}

TEST_F(ArrayTrouble, GivesOldBytesOrAnErrorWhenTheFileIsReplaced) {
  const Array array = Array::open(path_, {.read = {.memory_bytes = 4 * kMiB}});
  const std::string fresh =
      folder_.write("fresh.npy", npy_text("<f4", {kRows, kColumns}, pattern(data_.size(), 77)));
  ASSERT_EQ(::rename(fresh.c_str(), path_.c_str()), 0);
  try {
    auto batches = array.batches({.batch_size = 1000, .order = OrderKind::shuffle});
    while (const auto batch = batches.next()) ASSERT_TRUE(right(batch));
  } catch (const IoError& error) {
    EXPECT_EQ(error.err, ESTALE);
  }
}

TEST_F(ArrayTrouble, NamesStepAndPathWhenTheFileIsTruncatedInTheMiddle) {
  for (const EngineKind engine : {EngineKind::pread, EngineKind::automatic}) {
    const std::string path = folder_ / "cut.npy";
    std::filesystem::copy_file(path_, path, std::filesystem::copy_options::overwrite_existing);
    const Array array = Array::open(path, {.read = {.memory_bytes = 2 * kMiB, .engine = engine}});
    auto batches = array.batches({.batch_size = 100, .order = OrderKind::shuffle, .epoch = 3});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(right(batches.next()));
    std::filesystem::resize_file(path, kMiB);
    for (int round = 0; round < 2; ++round) {
      const std::string text = thrown<FormatError>([&] {
        while (const auto batch = batches.next()) ASSERT_TRUE(right(batch));
      });
      EXPECT_EQ(text.find(path + ": the file was truncated since it was opened"), 0U) << text;
      EXPECT_NE(text.find("it ends at byte 1048576 (epoch 3, step "), std::string::npos) << text;
    }
    EXPECT_THROW(batches.seek(0), FormatError);
    std::string out(kRowBytes, '\0');
    EXPECT_THROW(array.read(kRows - 1, 1, bytes_of(out)), FormatError);
  }
}

TEST_F(ArrayTrouble, DoesNotEndAnEpochEarlyAfterAnErrorInSeek) {
  const std::string path = folder_ / "cut.npy";
  std::filesystem::copy_file(path_, path);
  const Array array = Array::open(path, {.read = {.memory_bytes = 2 * kMiB}});
  auto batches = array.batches({.batch_size = 100});
  std::filesystem::resize_file(path, kMiB);
  EXPECT_THROW(batches.seek(0), FormatError);
  EXPECT_THROW((void)batches.next(), FormatError) << "not a silent end";
}

TEST_F(ArrayTrouble, WorksOnInAForkedChild) {
  if (!children_work()) GTEST_SKIP() << "the sanitizer does not follow threads into a child";
  for (const EngineKind engine : {EngineKind::automatic, EngineKind::pread, EngineKind::memory}) {
    const Array array = Array::open(path_, {.read = {.memory_bytes = 64 * kMiB, .engine = engine}});
    auto batches = array.batches({.batch_size = 1000, .order = OrderKind::shuffle});
    ASSERT_TRUE(right(batches.next()));
    const auto go_on = [&] {
      bool good = true;
      std::uint64_t steps = 1;
      while (const auto batch = batches.next()) {
        good = good && right(batch) && batch.step() == steps;
        ++steps;
      }
      return good && steps == batches.steps();
    };
    const pid_t child = start_child([&] {
      std::string out(kRowBytes, '\0');
      array.read(11, 1, bytes_of(out));
      return out == data_.substr(11 * kRowBytes, kRowBytes) && go_on() ? 0 : 1;
    });
    EXPECT_TRUE(go_on());
    expect_success(child);
  }
}

}  // namespace
}  // namespace lowtide::array_trouble_test

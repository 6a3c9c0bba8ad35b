// A shuffle against the slow obvious way: every unit, in the order that make_shuffle gives.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "job/shuffled.h"
#include "lowtide/jobs.h"

namespace lowtide::shuffle_test {
namespace {

constexpr std::uint64_t kMemory = 2 << 20;

struct RowCase {
  std::uint64_t rows;
  std::uint64_t row_bytes;
  std::uint64_t shards;
};

TEST(Shuffle, GivesTheRowsInTheOrderOfBatches) {
  for (const RowCase& one : {RowCase{1, 5, 1}, RowCase{7, 1, 7}, RowCase{100'000, 1, 3},
                             RowCase{1'000'003, 3, 2}, RowCase{70'000, 48, 1},
                             RowCase{33'000, 648, 5}, RowCase{20, 150'000, 4}, RowCase{5, 0, 2}}) {
    SCOPED_TRACE(std::to_string(one.rows) + " rows of " + std::to_string(one.row_bytes));
    const TempFolder folder;
    const std::string data = pattern(one.rows * one.row_bytes);
    folder.write("a.npy", npy_text("|u1", {one.rows, one.row_bytes}, data));
    const std::string to = folder / (one.shards == 1 ? "b.npy" : "b");
    plan_shuffle({.paths = {folder / "a.npy"}}, to,
                 {.seed = 7, .shards = one.shards, .memory_bytes = kMemory})
        .run();
    EXPECT_TRUE(array_bytes(to) == shuffled(data, one.row_bytes, one.rows, 7));
    EXPECT_EQ(files_of(to).size(), one.shards);
    EXPECT_EQ(names_in(folder.path()).size(), 2u);  // nothing hidden is left
  }
}

TEST(Shuffle, IsTheOrderOfArrayBatches) {
  const TempFolder folder;
  folder.write("a.npy", npy_text("<u4", {70'000, 2}, pattern(560'000)));
  plan_shuffle({.paths = {folder / "a.npy"}}, folder / "b.npy",
               {.seed = 3, .memory_bytes = kMemory})
      .run();
  std::string expected;
  auto batches = Array::open(folder / "a.npy").batches({.seed = 3});
  for (const Batch& batch : batches) {
    const auto bytes = std::as_bytes(batch.as<std::uint32_t>());
    expected.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  EXPECT_TRUE(array_bytes(folder / "b.npy") == expected);
  EXPECT_EQ(Array::open(folder / "b.npy").shape(), Array::open(folder / "a.npy").shape());
}

// Splits, buckets and where tasks ran leave no trace.
TEST(Shuffle, GivesTheSameBytesInAnyMemoryAndTaskByTask) {
  const TempFolder folder;
  folder.write("a.npy", npy_text("|u1", {40'000, 200}, pattern(8'000'000)));
  const auto file = [&](std::uint64_t memory_bytes) {
    const std::string to = folder / ("b" + std::to_string(memory_bytes) + ".npy");
    plan_shuffle({.paths = {folder / "a.npy"}}, to, {.memory_bytes = memory_bytes}).run();
    return file_text(to);
  };
  const std::string large = file(64 << 20);
  EXPECT_TRUE(file(1 << 20) == large);
  EXPECT_TRUE(file(3 << 20) == large);

  const Plan made =
      plan_shuffle({.paths = {folder / "a.npy"}}, folder / "c.npy", {.memory_bytes = 1 << 20});
  const Plan plan = Plan::from_text(made.text());
  EXPECT_EQ(plan.text(), made.text());
  ASSERT_GT(plan.tasks(0), 2u);
  for (std::size_t stage = 0; stage < plan.stages(); ++stage) {
    EXPECT_TRUE(plan.ready(stage));
    for (std::size_t i = plan.tasks(stage); i-- > 0;) {
      EXPECT_FALSE(plan.done(stage, i));
      plan.run_task(stage, i);
      EXPECT_TRUE(plan.done(stage, i));
      plan.run_task(stage, i);  // skipped
    }
  }
  EXPECT_TRUE(file_text(folder / "c.npy") == large);
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"a.npy", "b1048576.npy", "b3145728.npy",
                                                            "b67108864.npy", "c.npy"}));
}

TEST(Shuffle, TakesSeveralFilesAndFortranOrder) {
  const TempFolder folder;
  folder.write("a1.npy", npy_text("|u1", {1000, 3}, pattern(3000)));
  folder.write("a2.npy", npy_text("|u1", {500, 3}, pattern(1500, 2)));
  plan_shuffle({.paths = {folder / "a?.npy"}}, folder / "b.npy", {}).run();
  EXPECT_TRUE(array_bytes(folder / "b.npy") ==
              shuffled(pattern(3000) + pattern(1500, 2), 3, 1500, 0));
  folder.write("f.npy", npy_text("|u1", {2, 3}, "adbecf", true));  // rows abc, def
  plan_shuffle({.paths = {folder / "f.npy"}}, folder / "g.npy", {}).run();
  EXPECT_EQ(array_bytes(folder / "g.npy"), shuffled("abcdef", 3, 2, 0));
}

// Lengths with a long tail: 0 to a few hundred elements, and a few far above.
std::vector<std::uint64_t> some_lengths(std::uint64_t count, std::uint64_t longest) {
  std::vector<std::uint64_t> lengths;
  for (std::uint64_t i = 0; i < count; ++i)
    lengths.push_back(i % 997 == 5 ? longest - i % 10 : i * 7919 % 301);
  return lengths;
}

struct Ragged {
  explicit Ragged(const std::vector<std::uint64_t>& all) : lengths(all) {
    for (const std::uint64_t length : all) starts.push_back(starts.back() + length);
    values = pattern(starts.back() * 4);
  }
  std::vector<std::uint64_t> lengths;
  std::vector<std::uint64_t> starts{0};  // in elements of four bytes
  std::string values;

  [[nodiscard]] Ragged shuffled(std::uint64_t seed) const {
    Ragged out({});
    for (const std::uint64_t i : shuffled_units(lengths.size(), seed)) {
      out.values.append(values, starts[i] * 4, lengths[i] * 4);
      out.starts.push_back(out.starts.back() + lengths[i]);
    }
    return out;
  }
};

void expect_ragged(const Ragged& ragged, std::uint64_t shards, std::uint64_t memory_bytes) {
  const TempFolder folder;
  const std::uint64_t n = ragged.lengths.size();
  folder.write("v.npy", npy_text("<i4", {ragged.starts.back()}, ragged.values));
  folder.write("o.npy", npy_text("<u8", {n + 1}, text_of(ragged.starts)));
  plan_shuffle({.paths = {folder / "v.npy"}, .offsets = {folder / "o.npy"}}, folder / "out",
               {.seed = 5, .shards = shards, .memory_bytes = memory_bytes})
      .run();
  const Ragged expected = ragged.shuffled(5);
  const std::string end = shards == 1 ? ".npy" : "";
  EXPECT_TRUE(array_bytes(folder / "out/values" + end) == expected.values);
  EXPECT_TRUE(array_bytes(folder / "out/offsets" + end) == text_of(expected.starts));
  EXPECT_EQ(names_in(folder.path()).size(), 3u);
}

TEST(Shuffle, GivesRaggedRowsWithTheirOffsets) {
  expect_ragged(Ragged({3, 0, 2}), 1, kMemory);
  expect_ragged(Ragged(some_lengths(9000, 5000)), 1, kMemory);
  expect_ragged(Ragged(some_lengths(9000, 5000)), 3, 8 << 20);
}

// Rows so long that a bucket with several of them exceeds the memory, and is read in passes.
TEST(Shuffle, GathersABucketThatExceedsTheMemory) {
  std::vector<std::uint64_t> lengths(3000, 1);
  for (std::size_t i = 0; i < 60; ++i) lengths[i * 50] = 60'000;
  expect_ragged(Ragged(lengths), 1, 2 << 20);
}

}  // namespace
}  // namespace lowtide::shuffle_test

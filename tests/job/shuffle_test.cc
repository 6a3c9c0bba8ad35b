// A shuffle against the slow obvious way: every unit, in the order that make_shuffle gives.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "job/shuffled.h"
#include "lowtide/error.h"
#include "lowtide/jobs.h"
#include "support/thrown.h"

namespace lowtide::shuffle_test {
namespace {

constexpr std::uint64_t kMemory = 2 << 20;

struct RowCase {
  std::uint64_t rows;
  std::uint64_t row_bytes;
  std::uint64_t shards;
  std::uint64_t memory_bytes = kMemory;
};

TEST(Shuffle, GivesTheOrderOfBatches) {
  for (const RowCase& one : {RowCase{1, 5, 1}, RowCase{7, 1, 7}, RowCase{100'000, 1, 3},
                             RowCase{1'000'003, 3, 2}, RowCase{70'000, 48, 1},
                             RowCase{33'000, 648, 5}, RowCase{40, 150'000, 4}, RowCase{5, 0, 2}}) {
    SCOPED_TRACE(std::to_string(one.rows) + " rows of " + std::to_string(one.row_bytes));
    const TempFolder folder;
    const std::string data = pattern(one.rows * one.row_bytes);
    const std::string source =
        folder.write("a.npy", npy_text("|u1", {one.rows, one.row_bytes}, data));
    const std::string to = folder / (one.shards == 1 ? "b.npy" : "b");
    const Plan plan =
        plan_shuffle({.paths = {source}}, to,
                     {.seed = 7, .shards = one.shards, .memory_bytes = one.memory_bytes});
    plan.run();
    EXPECT_TRUE(array_bytes(to) == shuffled(data, one.row_bytes, one.rows, 7));
    EXPECT_EQ(names_in(folder.path()).size(), 2u);
  }
}

}  // namespace
}  // namespace lowtide::shuffle_test

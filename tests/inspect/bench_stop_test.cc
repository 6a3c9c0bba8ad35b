#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "inspect/hot_range.h"
#include "lowtide/command/bench.h"
#include "support/data_file.h"

namespace lowtide::bench_stop_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

void expect_stopped(const BenchCell& cell) {
  const std::string name = cell.pattern + " " + cell.state + " " + cell.engine;
  EXPECT_EQ(cell.why_not, "stopped") << name;
  EXPECT_EQ(cell.samples, 0u) << name;
  EXPECT_FALSE(cell.samples_per_second) << name;
  EXPECT_FALSE(cell.percent_of_device) << name;
}

TEST(BenchStop, KeepsWhatWasMeasuredBefore) {
  const TempFolder folder;
  std::uint64_t begun = 0;
  BenchOptions options{.memory_bytes = 4 * kMiB, .seconds = 0.02};
  options.progress = [&](const std::string&, std::uint64_t, std::uint64_t) { ++begun; };
  options.stop = [&] { return begun > 3; };
  const BenchReport report = bench(folder.write("a", pattern(20 * kMiB)), options);
  EXPECT_TRUE(report.stopped);
  EXPECT_EQ(begun, 4u) << "the one that was under way was the last";
  ASSERT_EQ(report.cells.size(), 12u);
  for (const BenchCell& cell : report.cells) {
    const bool before = cell.pattern == "random" && cell.state == "cold";
    EXPECT_EQ(cell.why_not == "stopped", !before) << cell.pattern << cell.state << cell.engine;
    if (!before) expect_stopped(cell);
  }
}

TEST(BenchStop, EndsAMeasurementThatIsUnderWay) {
  const TempFolder folder;
  BenchOptions options{.memory_bytes = 64 * kMiB, .seconds = 3600};
  std::uint64_t asked = 0;
  options.stop = [&] { return ++asked > 20; };
  const BenchReport report = bench(folder.write("a", pattern(20 * kMiB)), options);
  EXPECT_TRUE(report.stopped);
  expect_stopped(report.cells.back());
}

TEST(WarmRange, PutsOutWhatItBroughtInWhenItIsStopped) {
  const TempFolder folder;
  const auto file = std::make_shared<File>(folder.write("a", pattern(40 * kMiB)));
  const std::string& path = file->shard().path;
  if (!cached_bytes(path)) GTEST_SKIP() << "this kernel does not tell what is cached";
  if (!evict_all(path)) GTEST_SKIP() << "this file system keeps its cache";
  {
    std::uint64_t asked = 0;
    const WarmRange warm(file, 40 * kMiB, true, [&] { return ++asked > 16; });
    EXPECT_EQ(asked, 17u);
    EXPECT_EQ(warm.range().size_bytes, 0u);
  }
  EXPECT_LT(cached_bytes(path).value_or(0), 8 * kMiB);
}

}  // namespace
}  // namespace lowtide::bench_stop_test

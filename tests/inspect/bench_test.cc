#include "lowtide/command/bench.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "lowtide/error.h"
#include "os/ring.h"
#include "os/sys.h"
#include "support/data_file.h"
#include "support/npy_file.h"
#include "support/pinned_pages.h"
#include "support/thrown.h"

namespace lowtide::bench_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kRowBytes = 648;
constexpr std::uint64_t kRows = 30'000;

class BenchTest : public testing::Test {
 protected:
  [[nodiscard]] std::string matrix() const {
    return folder_.write("m.npy", npy_text("<f4", {kRows, 162}, pattern(kRows * kRowBytes)));
  }
  [[nodiscard]] static BenchOptions quick(std::uint64_t memory_bytes = 4 * kMiB) {
    BenchOptions options;
    options.seconds = 0.02;
    options.memory_bytes = memory_bytes;
    return options;
  }

  TempFolder folder_;
};

const BenchCell& find(const BenchReport& report, const std::string& pattern,
                      const std::string& state, const std::string& engine) {
  for (const BenchCell& cell : report.cells) {
    if (cell.pattern == pattern && cell.state == state && cell.engine == engine) return cell;
  }
  throw std::runtime_error("no cell " + pattern + " " + state + " " + engine);
}

void expect_measured(const BenchCell& cell, std::uint64_t sample_bytes) {
  const std::string name = cell.pattern + " " + cell.state + " " + cell.engine;
  EXPECT_EQ(cell.why_not, "") << name;
  EXPECT_GT(cell.seconds, 0) << name;
  EXPECT_GE(cell.samples, 1u) << name;
  EXPECT_NE(cell.how, "") << name;
  EXPECT_GT(cell.samples_per_second.value_or(0), 0) << name;
  EXPECT_GT(cell.bytes_per_second.value_or(0), 0) << name;
  if (cell.engine != "device") {
    EXPECT_EQ(cell.bytes, cell.samples * sample_bytes) << name;
  }
}

void expect_skipped(const BenchCell& cell) {
  const std::string name = cell.pattern + " " + cell.state + " " + cell.engine;
  EXPECT_NE(cell.why_not, "") << name;
  EXPECT_EQ(cell.samples, 0u) << name;
  EXPECT_FALSE(cell.samples_per_second) << name;
  EXPECT_FALSE(cell.percent_of_device) << name;
}

TEST_F(BenchTest, HasEveryCellOnceAndInOrder) {
  const BenchReport report = bench(matrix(), quick());
  std::vector<std::string> cells;
  for (const BenchCell& cell : report.cells) {
    cells.push_back(cell.pattern + " " + cell.state + " " + cell.engine);
  }
  std::vector<std::string> expected;
  for (const char* pattern : {"random", "sequential"}) {
    for (const char* cell : {" cold device", " cold uring", " cold pread", " hot pread",
                             " hot uring", " hot memory"}) {
      expected.push_back(std::string(pattern) + cell);
    }
  }
  EXPECT_EQ(cells, expected);
  EXPECT_EQ(report.format, "npy");
  EXPECT_EQ(report.unit, "row");
  EXPECT_EQ(report.sample_bytes, kRowBytes);
  EXPECT_EQ(report.samples, kRows);
}

TEST_F(BenchTest, MeasuresTheDiskPastACachedFileAndLeavesTheCacheAlone) {
  const std::string path = matrix();
  if (File(path).direct_fd() < 0) GTEST_SKIP() << "this file system has no direct I/O";
  const std::uint64_t all = File(path).shard().size_bytes;
  const PinnedPages pinned(path, all);
  if (!pinned.why_not().empty()) GTEST_SKIP() << pinned.why_not();
  const DropSpy spy;
  const BenchReport report = bench(path, quick());
  for (const char* pattern : {"random", "sequential"}) {
    expect_measured(find(report, pattern, "cold", "device"), kRowBytes);
    expect_measured(find(report, pattern, "cold", "pread"), kRowBytes);
    EXPECT_EQ(find(report, pattern, "cold", "device").percent_of_device, 100);
    EXPECT_GT(find(report, pattern, "cold", "pread").percent_of_device.value_or(0), 0);
    if (Ring::probe().empty()) expect_measured(find(report, pattern, "cold", "uring"), kRowBytes);
    EXPECT_FALSE(find(report, pattern, "hot", "pread").percent_of_device);
  }
  EXPECT_GT(DropSpy::first_bytes(), all) << "nothing was to be dropped";
  if (!cached_bytes(path)) GTEST_SKIP() << "this kernel does not tell what is cached";
  EXPECT_EQ(report.cached_before_bytes, all);
  EXPECT_EQ(report.cached_after_bytes, all);
  EXPECT_EQ(report.hot_bytes, all);
  expect_measured(find(report, "random", "hot", "pread"), kRowBytes);
  expect_measured(find(report, "sequential", "hot", "pread"), kRowBytes);
}

TEST_F(BenchTest, LeavesAColdFileColdAndDoesNotWarmItUnasked) {
  const std::string path = matrix();
  if (File(path).direct_fd() < 0) GTEST_SKIP() << "this file system has no direct I/O";
  if (!cached_bytes(path)) GTEST_SKIP() << "this kernel does not tell what is cached";
  if (!evict_all(path)) GTEST_SKIP() << "this file system keeps its cache";
  const BenchReport report = bench(path, quick());
  EXPECT_EQ(report.cached_before_bytes, 0u);
  // The header, and the read-ahead that opening it starts.
  EXPECT_LT(report.cached_after_bytes.value_or(0), kMiB);
  EXPECT_EQ(report.hot_bytes, 0u);
  for (const char* pattern : {"random", "sequential"}) {
    for (const char* engine : {"pread", "uring"})
      expect_skipped(find(report, pattern, "hot", engine));
  }
}

TEST_F(BenchTest, WarmsWhenAskedAndPutsOutWhatItBroughtIn) {
  const std::string path = folder_.write("plain", pattern(40 * kMiB));
  if (!cached_bytes(path)) GTEST_SKIP() << "this kernel does not tell what is cached";
  if (!evict_all(path)) GTEST_SKIP() << "this file system keeps its cache";
  BenchOptions options = quick();
  options.warm = true;
  options.warm_bytes = 28 * kMiB;
  const BenchReport report = bench(path, options);
  EXPECT_EQ(report.unit, "block");
  EXPECT_EQ(report.hot_bytes, 20 * kMiB);
  expect_measured(find(report, "random", "hot", "pread"), 4096);
  expect_measured(find(report, "sequential", "hot", "pread"), 4096);
  EXPECT_LT(report.cached_after_bytes.value_or(0), 16 * kMiB);
  EXPECT_FALSE(report.notes.empty());
}

TEST_F(BenchTest, HoldsAFileThatFitsAndSaysWhyOneDoesNot) {
  const std::string path = matrix();
  BenchOptions options = quick(64 * kMiB);
  options.seconds = 0.2;  // the file is read once in five times this
  const BenchReport fits = bench(path, options);
  const BenchCell& held = find(fits, "random", "hot", "memory");
  if (held.why_not.find("longer") == std::string::npos) {
    expect_measured(held, kRowBytes);
    EXPECT_LT(held.bytes_read, held.bytes + kMiB) << "nothing is read again";
  }
  const BenchReport small = bench(path, quick(4 * kMiB));
  expect_skipped(find(small, "random", "hot", "memory"));
  EXPECT_NE(find(small, "random", "hot", "memory").why_not.find("a memory of 4 MiB"),
            std::string::npos);
}

int no_ring(unsigned, struct io_uring*) {
  return -EPERM;
}

TEST_F(BenchTest, WorksWithoutARing) {
  const std::string path = matrix();
  if (File(path).direct_fd() < 0) GTEST_SKIP() << "this file system has no direct I/O";
  const sys::Fault fault(sys::table.ring_init, &no_ring);
  const BenchReport report = bench(path, quick());
  EXPECT_NE(report.why_no_uring, "");
  for (const char* pattern : {"random", "sequential"}) {
    expect_measured(find(report, pattern, "cold", "device"), kRowBytes);
    EXPECT_NE(find(report, pattern, "cold", "device").how.find("64 threads"), std::string::npos);
    expect_measured(find(report, pattern, "cold", "pread"), kRowBytes);
    expect_skipped(find(report, pattern, "cold", "uring"));
    expect_skipped(find(report, pattern, "hot", "uring"));
  }
}

int forbidden(int, const sys::CachestatRange*, sys::Cachestat*) {
  errno = EPERM;
  return -1;
}

TEST_F(BenchTest, SaysUnknownWhereTheKernelDoesNotTellWhatIsCached) {
  const std::string path = matrix();
  const sys::Fault fault(sys::table.cachestat, &forbidden);
  BenchOptions options = quick();
  const BenchReport report = bench(path, options);
  EXPECT_FALSE(report.cached_before_bytes);
  EXPECT_FALSE(report.cached_after_bytes);
  EXPECT_NE(report.cached_unknown.find("EPERM"), std::string::npos);
  expect_skipped(find(report, "random", "hot", "pread"));
  options.warm = true;
  expect_measured(find(bench(path, options), "random", "hot", "pread"), kRowBytes);
}

TEST_F(BenchTest, ReadsTokensAsWindowsAndAnythingAsRowsOfAGivenSize) {
  const std::string tokens = folder_.write("train.bin", pattern(20 * kMiB));
  BenchOptions options = quick();
  options.warm = true;
  options.warm_bytes = 18 * kMiB;
  const BenchReport windows = bench(tokens, options);
  EXPECT_EQ(windows.format, "nanogpt");
  EXPECT_EQ(windows.unit, "window");
  EXPECT_EQ(windows.sample_bytes, 2050u);
  EXPECT_EQ(windows.batch_size, 12u);
  for (const BenchCell& cell : windows.cells) {
    if (cell.why_not.empty()) expect_measured(cell, 2050);
  }
  options = quick();
  options.row_bytes = 1000;
  options.batch_size = 7;
  const BenchReport rows = bench(matrix(), options);
  EXPECT_EQ(rows.format, "raw");
  EXPECT_EQ(rows.unit, "row");
  EXPECT_EQ(rows.sample_bytes, 1000u);
  EXPECT_EQ(rows.batch_size, 7u);
  for (const BenchCell& cell : rows.cells) {
    if (cell.why_not.empty()) expect_measured(cell, 1000);
  }
}

TEST_F(BenchTest, ReadsFortranOrderAndLongRowsInOneWayOrAnother) {
  const std::string fortran =
      folder_.write("f.npy", npy_text("<f4", {4096, 512}, pattern(8 * kMiB), true));
  EXPECT_EQ(bench(fortran, quick()).unit, "block");
  const std::string odd =
      folder_.write("o.npy", npy_text("|u1", {3, 3 * kMiB / 2}, pattern(9 * kMiB / 2)));
  const BenchReport longs = bench(odd, quick(32 * kMiB));
  EXPECT_EQ(longs.samples, 3u);
  for (const BenchCell& cell : longs.cells) {
    if (cell.why_not.empty()) expect_measured(cell, 3 * kMiB / 2);
  }
}

TEST_F(BenchTest, SaysThatRowsAreTooLongForThePartThatIsWarm) {
  BenchOptions options = quick(64 * kMiB);
  options.row_bytes = 12 * kMiB;
  options.warm = true;
  options.warm_bytes = 26 * kMiB;
  const std::string path = folder_.write("a", pattern(40 * kMiB));
  if (!evict_all(path)) GTEST_SKIP() << "this file system keeps its cache";
  const std::string why = find(bench(path, options), "random", "hot", "pread").why_not;
  EXPECT_EQ(why, "the part of the file that warm loads holds fewer rows than one batch");
}

TEST_F(BenchTest, SaysThatASmallFileTellsNothing) {
  EXPECT_NE(bench(matrix(), quick()).too_small.find("too small to say anything"),
            std::string::npos);
  const std::string large = folder_.write("large", "");
  std::filesystem::resize_file(large, 64 * kMiB);
  EXPECT_EQ(bench(large, quick()).too_small, "");
}

std::string refusal(const std::string& path) {
  return thrown([&] { (void)bench(path, {.seconds = 0.01}); });
}

TEST_F(BenchTest, RefusesWhatCannotBeMeasured) {
  EXPECT_NE(refusal(folder_.write("empty", "")).find("the file is empty and cannot be measured"),
            std::string::npos);
  EXPECT_NE(refusal(folder_.write("tiny", "xyz")).find("expected at least 1 MiB, found 3 B"),
            std::string::npos);
  EXPECT_NE(refusal(folder_.path()).find("Is a directory"), std::string::npos);
  EXPECT_NE(refusal(folder_ / "missing").find("No such file"), std::string::npos);
  EXPECT_NE(refusal(folder_.write("one.npy", npy_text("|u1", {1, 2 * kMiB}, pattern(2 * kMiB))))
                .find("expected at least two rows"),
            std::string::npos);
  for (const double seconds : {0.0, -1.0, 1e9}) {
    EXPECT_THROW((void)bench(folder_.path(), {.seconds = seconds}), std::invalid_argument);
  }
}

TEST_F(BenchTest, TellsOfEachMeasurementBeforeItBegins) {
  BenchOptions options = quick();
  std::vector<std::uint64_t> done;
  options.progress = [&](const std::string& what, std::uint64_t before, std::uint64_t all) {
    EXPECT_NE(what, "");
    EXPECT_EQ(all, 12u);
    done.push_back(before);
  };
  (void)bench(matrix(), options);
  ASSERT_EQ(done.size(), 12u);
  for (std::size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i], i);
}

}  // namespace
}  // namespace lowtide::bench_test

#include "verdict/series.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "verdict/pictures.h"
#include "verdict/summary.h"

namespace lowtide::series_test {
namespace {

const Layer& layer_of(const View& view, LayerKind kind) {
  const auto found = std::ranges::find(view.layers, kind, &Layer::kind);
  if (found == view.layers.end()) throw std::out_of_range("no such layer");
  return *found;
}

std::optional<std::uint64_t> highest(const Column& column) {
  return *std::ranges::max_element(column);
}

TEST(Series, LayersOfMappedFilesAddUpToWhatTheProcessesMap) {
  const Trace trace = scan_picture();
  const Series series = series_of(trace, 1000);
  ASSERT_EQ(series.seconds.size(), trace.readings.size());
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    std::uint64_t files = 0;
    for (const Layer& layer : series.tree.layers) {
      if (layer.kind == LayerKind::file || layer.kind == LayerKind::other_files ||
          layer.kind == LayerKind::libraries) {
        files += layer.bytes[i].value();
      }
    }
    EXPECT_EQ(files, trace.readings[i].processes[0].file.value) << i;
  }
}

TEST(Series, FilesBetweenTwoLooksLieOnAStraightLine) {
  Trace trace = scan_picture(21);
  for (std::size_t i = 0; i < 21; ++i) trace.readings[i].seconds = static_cast<double>(i);
  const Series series = series_of(trace, 1000);
  const Column& train = layer_of(series.tree, LayerKind::file).bytes;
  const std::uint64_t from = train[10].value(), to = train[20].value();
  EXPECT_EQ(train[15].value(), from + (to - from) / 2);
}

TEST(Series, APartThatNobodyLookedUpIsOtherFilesAndNotTheLargestOne) {
  Trace trace = scan_picture(30);
  for (std::size_t i = 11; i < 30; ++i) trace.readings[i].files.reset();
  const Series series = series_of(trace, 1000);
  const Column& train = layer_of(series.tree, LayerKind::file).bytes;
  EXPECT_EQ(train[29], train[10]);
  EXPECT_GT(layer_of(series.tree, LayerKind::other_files).bytes[29].value(), 1000 * kMiB);
}

TEST(Series, SmallFilesShareOneLayer) {
  const Series series = series_of(scan_picture(), 1000);
  EXPECT_EQ(std::ranges::count(series.tree.layers, LayerKind::file, &Layer::kind), 1);
  const Series hour = series_of(hour_picture(200), 1000);
  EXPECT_EQ(std::ranges::count(hour.tree.layers, LayerKind::file, &Layer::kind), 5);
}

TEST(Series, LibrariesAreOneLayerHoweverManyAndHoweverLarge) {
  Trace trace = scan_picture(30);
  for (Reading& reading : trace.readings) {
    reading.processes[0].file = figure_of(4096 * kMiB);
    if (!reading.files) continue;
    for (int i = 0; i < 45; ++i) {
      reading.files->push_back(file_of("/usr/lib/libtorch_" + std::to_string(i) + ".so.2",
                                       40 * kMiB, 40 * kMiB, 50 * kMiB));
    }
  }
  const Series series = series_of(trace, 1000);
  EXPECT_EQ(std::ranges::count(series.tree.layers, LayerKind::libraries, &Layer::kind), 1);
  EXPECT_EQ(std::ranges::count(series.tree.layers, LayerKind::file, &Layer::kind), 1);
  EXPECT_EQ(layer_of(series.tree, LayerKind::libraries).bytes[10],
            (45 * 40 + 24 + 12) * static_cast<std::uint64_t>(kMiB));
}

TEST(Series, ThePageCacheIsNeverBelowWhatIsMappedThoughItIsLookedAtRarely) {
  Trace trace = scan_picture(41);
  for (std::size_t i = 1; i < 41; ++i) trace.readings[i].files.reset();  // one look, at the start
  const Series series = series_of(trace, 1000);
  // Of the libraries, less 4 MiB that are mapped of files that no list names.
  EXPECT_EQ(series.unmapped_cache[0], 6U << 20);
  EXPECT_EQ(series.unmapped_cache[40], 0U);
  // A map that goes leaves its pages in the cache.
  Trace gone = scan_picture(41);
  gone.readings[40].processes[0].file = figure_of(36 * kMiB);
  gone.readings[40].files->at(0).mapped = Figure::known(0);
  const std::uint64_t cached = *gone.readings[40].files->at(0).cached.value;
  EXPECT_EQ(series_of(gone, 1000).unmapped_cache[40], cached + (10U << 20));
}

TEST(Series, SharedPagesOfSeveralProcessesAreNotTakenForUnmappedCache) {
  Trace trace = scan_picture(1);
  trace.readings[0].processes = {process_of(100, kMiB, 30 * kMiB),
                                 process_of(101, kMiB, 30 * kMiB)};
  trace.readings[0].files = {file_of("/usr/lib/libc.so.6", 60 * kMiB, 30 * kMiB, 30 * kMiB),
                             file_of("/data/a", 0, 50 * kMiB, 50 * kMiB)};
  EXPECT_EQ(series_of(trace, 10).unmapped_cache[0], 50U << 20);
}

TEST(Series, ALayerThatIsAlwaysZeroIsLeftOut) {
  const Series series = series_of(flat_trace(1), 100);
  EXPECT_EQ(std::ranges::count(series.tree.layers, LayerKind::shared, &Layer::kind), 0);
  EXPECT_EQ(std::ranges::count(series.tree.layers, LayerKind::heap, &Layer::kind), 1);
}

TEST(Series, ProcessByProcessAddsUpToTheTree) {
  const Trace trace = hour_picture(20);
  const Series series = series_of(trace, 100);
  ASSERT_EQ(series.processes.layers.size(), 5U);
  EXPECT_EQ(series.processes.layers[0].name, "python (pid 100)");
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(total_at(series.processes, i), total_at(series.tree, i)) << i;
  }
  EXPECT_TRUE(series_of(scan_picture(), 100).processes.layers.empty());
}

TEST(Series, ProcessesBeyondSixShareALayerAndAProcessThatIsNotThereHoldsNothing) {
  Trace trace = scan_picture(4);
  for (int pid = 101; pid < 110; ++pid) {
    trace.readings[2].processes.push_back(process_of(pid, (pid - 100) * kMiB));
  }
  const Series series = series_of(trace, 100);
  ASSERT_EQ(series.processes.layers.size(), 7U);
  EXPECT_EQ(series.processes.layers.back().name, "4 other processes");
  EXPECT_EQ(series.processes.layers.back().bytes[1], 0U);
  EXPECT_EQ(total_at(series.processes, 2), total_at(series.tree, 2));
}

TEST(Series, ThinningKeepsEveryPeakExactly) {
  Trace trace = hour_picture();
  trace.readings[1777].processes[2].anon = Figure::known(77'777'777'777);
  trace.readings[2222].processes[1].page_tables = Figure::known(9'999'999'999);
  const Series series = series_of(trace, 300);
  EXPECT_LE(series.seconds.size(), 340U);
  EXPECT_TRUE(std::ranges::is_sorted(series.seconds));
  const Peak peak = peak_of(trace);
  EXPECT_EQ(highest(layer_of(series.tree, LayerKind::heap).bytes), peak.anon);
  EXPECT_EQ(highest(layer_of(series.tree, LayerKind::page_tables).bytes), peak.page_tables);
  EXPECT_EQ(highest(layer_of(series.tree, LayerKind::shared).bytes), peak.shmem);
  EXPECT_EQ(series.seconds.front(), trace.readings.front().seconds);
  EXPECT_EQ(series.seconds.back(), trace.readings.back().seconds);
}

TEST(Series, ThinningLosesNoByteThatWasRead) {
  const Trace trace = hour_picture();
  const Series series = series_of(trace, 300);
  double bytes = 0;
  for (std::size_t i = 1; i < series.seconds.size(); ++i) {
    bytes += static_cast<double>(series.tree.read_bytes_per_s[i].value()) *
             (series.seconds[i] - series.seconds[i - 1]);
  }
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    expected += *trace.readings.back().processes[i].disk_bytes.value -
                *trace.readings.front().processes[i].disk_bytes.value;
  }
  EXPECT_NEAR(bytes, static_cast<double>(expected), 1e-6 * static_cast<double>(expected));
}

TEST(Series, BytesReadByAChildThatCameLaterCountFromItsBegin) {
  Trace trace = scan_picture(3);
  for (std::size_t i = 0; i < 3; ++i) {
    trace.readings[i].seconds = static_cast<double>(i);
    trace.readings[i].processes[0].disk_bytes = Figure::known(500);
  }
  trace.readings[1].processes.push_back(process_of(101, kMiB));
  trace.readings[1].processes[1].disk_bytes = Figure::known(7000);
  const Series series = series_of(trace, 10);
  EXPECT_EQ(series.tree.read_bytes_per_s,
            (Column{std::nullopt, std::uint64_t{7000}, std::uint64_t{0}}));
  EXPECT_EQ(series.root.read_bytes_per_s,
            (Column{std::nullopt, std::uint64_t{0}, std::uint64_t{0}}));
}

TEST(Series, WhatIsUnknownStaysUnknown) {
  const Series series = series_of(hole_picture(0.4, 0.6), 1000);
  for (std::size_t i = 40; i < 60; ++i) {
    EXPECT_EQ(total_at(series.tree, i), std::nullopt) << i;
    for (const Layer& layer : series.tree.layers) EXPECT_EQ(layer.bytes[i], std::nullopt);
    EXPECT_EQ(series.tree.read_bytes_per_s[i], std::nullopt);
  }
  EXPECT_EQ(series.unmapped_cache[45], std::nullopt);
  EXPECT_NE(total_at(series.tree, 39), std::nullopt);
  const Series thin = series_of(hole_picture(0.4, 0.6), 20);
  EXPECT_TRUE(std::ranges::any_of(thin.tree.layers[0].bytes, [](auto b) { return !b; }));
}

TEST(Series, TheFirstProcessAloneIsAViewOfItsOwn) {
  const Trace trace = hour_picture(20);
  const Series series = series_of(trace, 100);
  ASSERT_TRUE(series.has_children);
  EXPECT_EQ(layer_of(series.root, LayerKind::heap).bytes[3],
            trace.readings[3].processes[0].anon.value);
  EXPECT_EQ(layer_of(series.root, LayerKind::other_files).bytes[3],
            trace.readings[3].processes[0].file.value);
  EXPECT_FALSE(series_of(scan_picture(), 100).has_children);
}

TEST(Series, AProcessThatTellsOnlyItsSumHasALayerOfItsOwn) {
  Trace trace = scan_picture(4);
  for (Reading& reading : trace.readings) {
    reading.processes = {process_unknown(100)};
    reading.processes[0].rss_alone = 4242;
  }
  const Series series = series_of(trace, 100);
  EXPECT_EQ(layer_of(series.tree, LayerKind::unsplit).bytes[2], 4242U);
  EXPECT_EQ(layer_of(series.tree, LayerKind::heap).bytes[2], std::nullopt);
}

TEST(Series, SumsOfHostileNumbersDoNotWrap) {
  Trace trace = scan_picture(3);
  trace.readings[1].processes[0].anon = trace.readings[1].processes[0].file =
      Figure::known(UINT64_MAX);
  EXPECT_EQ(total_at(series_of(trace, 10).tree, 1), UINT64_MAX);
}

TEST(Series, AnEmptyTraceHasNoPoints) {
  const Series series = series_of(empty_picture(), 100);
  EXPECT_TRUE(series.seconds.empty());
  EXPECT_EQ(series.end_seconds, 0);
}

}  // namespace
}  // namespace lowtide::series_test

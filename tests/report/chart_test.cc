#include "report/chart.h"

#include <gtest/gtest.h>

#include <regex>

#include "report/axis.h"
#include "report/panel.h"
#include "report/report.h"
#include "support/xml.h"
#include "verdict/pictures.h"
#include "verdict/verdict.h"

namespace lowtide::chart_test {
namespace {

std::string drawn(const Trace& trace, const PictureOptions& options = {}) {
  return draw_chart(series_of(trace, 300), trace.marks, "title", "description", options);
}

std::vector<std::pair<std::string, Trace>> all_pictures() {
  return {{"scan", scan_picture()},        {"hour", hour_picture(1000)},
          {"empty", empty_picture()},      {"hole", hole_picture(0.4, 0.6)},
          {"unknown", hole_picture(0, 1)}, {"one", one_reading_picture()},
          {"hostile", hostile_picture()},  {"fork server", fork_server_trace(5)}};
}

std::vector<std::string> paths_of(const std::string& svg, const std::string& look) {
  std::vector<std::string> found;
  const std::regex pattern("<path class=\"" + look + "\"[^>]* d=\"([^\"]*)\"");
  for (std::sregex_iterator i(svg.begin(), svg.end(), pattern), end; i != end; ++i) {
    found.push_back((*i)[1]);
  }
  return found;
}

TEST(Chart, IsWellFormedWhateverTheTraceHolds) {
  for (const auto& [name, trace] : all_pictures()) {
    EXPECT_EQ(xml_fault(drawn(trace)), "") << name;
    EXPECT_EQ(xml_fault(svg_report(trace)), "") << name;
    EXPECT_EQ(xml_fault(svg_report(trace, {.small = true})), "") << name;
  }
}

TEST(Chart, EveryPointLiesInsideTheViewbox) {
  const std::regex pair("[ML](-?[0-9.]+) (-?[0-9.]+)");
  const std::regex text("<text[^>]* x=\"(-?[0-9.]+)\" y=\"(-?[0-9.]+)\"");
  for (const bool small : {false, true}) {
    const double width = small ? 440 : 960, height = small ? 260 : 520;
    for (const auto& [name, trace] : all_pictures()) {
      std::string svg = drawn(trace, {.small = small});
      svg.erase(0, svg.find("</defs>"));
      EXPECT_EQ(svg.find("nan"), std::string::npos) << name;
      EXPECT_EQ(svg.find("inf"), std::string::npos) << name;
      for (const std::regex& what : {pair, text}) {
        for (std::sregex_iterator i(svg.begin(), svg.end(), what), end; i != end; ++i) {
          const double x = std::stod((*i)[1]), y = std::stod((*i)[2]);
          ASSERT_TRUE(x >= 0 && x <= width && y >= 0 && y <= height) << name << ": " << i->str();
        }
      }
    }
  }
}

TEST(Chart, BothAxesAreLabelledWithUnits) {
  const std::string svg = drawn(scan_picture());
  for (const char* label :
       {">memory of all processes, and page cache of their files<", ">read from disk per second<",
        ">time since the start<", ">2 GiB<", "MiB/s<", ">10 s<"}) {
    EXPECT_NE(svg.find(label), std::string::npos) << label;
  }
}

TEST(Chart, WhatIsUnknownIsLeftOpenAndToldAndNeverDrawnAsZero) {
  const std::string hole = drawn(hole_picture(0.4, 0.6));
  EXPECT_NE(hole.find("class=\"unknown\""), std::string::npos);
  EXPECT_NE(hole.find(">unknown<"), std::string::npos);
  const std::string area = paths_of(hole, "area").at(0);
  EXPECT_EQ(std::ranges::count(area, 'M'), 2);  // before and after the hole
  const std::string all = drawn(hole_picture(0, 1));
  EXPECT_TRUE(paths_of(all, "area").empty());
  EXPECT_TRUE(paths_of(all, "read").empty());
  EXPECT_TRUE(paths_of(all, "cache").empty());
  EXPECT_NE(all.find("bytes read: unknown"), std::string::npos);
}

TEST(Chart, AxesReachAtLeastAsFarAsAskedSoThatPicturesCompare) {
  const PictureOptions options{.memory_bytes = 5ULL << 30, .seconds = 120, .small = true};
  for (const Trace& trace : {scan_picture(), one_reading_picture()}) {
    const std::string svg = svg_report(trace, options);
    for (const char* label : {">2 GiB<", ">4 GiB<", ">2 min<"}) {
      EXPECT_NE(svg.find(label), std::string::npos) << label;
    }
  }
  const std::string low = drawn(scan_picture(), {.memory_bytes = 1, .seconds = 1});
  EXPECT_EQ(low, drawn(scan_picture()));  // at least: nothing is cut off
}

TEST(Chart, ASmallPictureTellsDataFromLibrariesAndHasNoIdsThatPicturesShare) {
  const std::string svg = svg_report(scan_picture(), {.small = true});
  EXPECT_NE(svg.find(">train.bin<"), std::string::npos);
  EXPECT_EQ(paths_of(svg, "area").size(), 5U);  // heap, tables, shared, libraries, train.bin
  EXPECT_NE(svg.find("fill=\"url(#lt-look-1)\""), std::string::npos);
  EXPECT_NE(svg.find("fill=\"url(#lt-look-6)\""), std::string::npos);
  EXPECT_EQ(svg.find("lt-title"), std::string::npos);
  EXPECT_NE(svg.find("aria-label=\"Memory over time. "), std::string::npos);
}

TEST(Chart, OneReadingIsSeen) {
  const std::string area = paths_of(drawn(one_reading_picture()), "area").at(0);
  EXPECT_EQ(std::ranges::count(area, 'L'), 3);  // a bar, not a line of no width
}

TEST(Chart, AreasHavePatternsAndNamesSoThatColourIsNeverAlone) {
  const std::string svg = drawn(scan_picture());
  EXPECT_NE(svg.find("class=\"name mid\""), std::string::npos);
  EXPECT_NE(svg.find(">train.bin<"), std::string::npos);
  EXPECT_NE(svg.find("class=\"hatch\""), std::string::npos);
  EXPECT_NE(svg.find(">memory limit 3 GiB<"), std::string::npos);
}

// The boxes of all names within the plot, as wide as they are reckoned to be.
std::vector<Box> name_boxes(const std::string& svg) {
  std::vector<Box> boxes;
  const std::regex name(
      "<text class=\"name( mid| end)?\" x=\"([0-9.]+)\" y=\"([0-9.]+)\">([^<]*)<");
  for (std::sregex_iterator i(svg.begin(), svg.end(), name), end; i != end; ++i) {
    const std::string anchor = (*i)[1];
    const double x = std::stod((*i)[2]), y = std::stod((*i)[3]);
    const double width = 7 * static_cast<double>((*i)[4].length());
    const double left = anchor == " mid" ? x - width / 2 : anchor == " end" ? x - width : x;
    boxes.push_back({left, y - 11, left + width, y + 3});
  }
  return boxes;
}

TEST(Chart, NoNameLiesOnAnother) {
  std::vector<std::pair<std::string, Trace>> pictures = all_pictures();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    pictures.emplace_back("leak " + std::to_string(seed), leak_trace(seed));
  }
  std::size_t names = 0;
  for (const auto& [name, trace] : pictures) {
    for (const bool small : {false, true}) {
      const std::vector<Box> boxes = name_boxes(drawn(trace, {.small = small}));
      names += boxes.size();
      for (std::size_t a = 0; a < boxes.size(); ++a) {
        for (std::size_t b = a + 1; b < boxes.size(); ++b) {
          EXPECT_FALSE(boxes[a].meets(boxes[b])) << name << ": " << a << " and " << b;
        }
      }
    }
  }
  EXPECT_GT(names, 20U);
}

TEST(Chart, ALeakHasALineThatSaysHowFastItGrows) {
  const Trace trace = leak_trace(3);
  ASSERT_EQ(judge(trace).kind, VerdictKind::heap_leak);
  const Series series = series_of(trace, 300);
  ASSERT_TRUE(series.trend);
  EXPECT_GT(series.trend->to_bytes, series.trend->from_bytes);
  const std::string svg = drawn(trace);
  EXPECT_EQ(paths_of(svg, "trend").size(), 1U);
  EXPECT_NE(svg.find(">leak: "), std::string::npos);
  EXPECT_TRUE(paths_of(drawn(scan_picture()), "trend").empty());
  EXPECT_TRUE(paths_of(drawn(trace, {.small = true}), "trend").empty());
}

TEST(Chart, ThePageCacheThatNobodyMapsLiesOnTopOfTheStack) {
  Trace trace = scan_picture();
  for (Reading& reading : trace.readings) {
    if (reading.files) reading.files->at(0).cached = Figure::known(4096ULL << 20);
  }
  const std::string svg = drawn(trace);
  ASSERT_EQ(paths_of(svg, "cache").size(), 1U);
  EXPECT_NE(svg.find(">page cache, not mapped<"), std::string::npos);
  const Series series = series_of(trace, 300);
  const Band cache = band_above(series.tree, series.unmapped_cache);
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    EXPECT_EQ(cache.low[i], total_at(series.tree, i)) << i;
  }
}

TEST(Chart, ALimitFarAboveIsToldInWordsAndDoesNotPressTheCurveFlat) {
  Trace trace = scan_picture();
  for (Reading& reading : trace.readings) {
    if (reading.group) reading.group->limit = Figure::known(1ULL << 40);
  }
  const std::string svg = drawn(trace);
  EXPECT_TRUE(paths_of(svg, "limit").empty());
  EXPECT_NE(svg.find("memory limit 1 TiB, above this chart"), std::string::npos);
  EXPECT_NE(svg.find(">2 GiB<"), std::string::npos);
}

TEST(Chart, NamesOfManyMarksDoNotOverlap) {
  const std::string svg = drawn(hour_picture(500));
  const std::regex label("<text class=\"tick mid\" x=\"([0-9.]+)\" y=\"38\">([^<]*)<");
  double free_from = 0;
  int count = 0;
  for (std::sregex_iterator i(svg.begin(), svg.end(), label), end; i != end; ++i, ++count) {
    const double half = 3.3 * static_cast<double>((*i)[2].length());
    EXPECT_GE(std::stod((*i)[1]) - half, free_from) << i->str();
    free_from = std::stod((*i)[1]) + half;
  }
  EXPECT_GT(count, 3);
  EXPECT_LE(paths_of(svg, "mark").size(), 2 * 26U);
}

TEST(Chart, TicksAreRoundAndCoverTheTop) {
  const ByteTicks ticks = byte_ticks(5'000'000'000, 5);
  EXPECT_EQ(ticks.step, 1ULL << 30);
  EXPECT_EQ(ticks.at.back(), 5ULL << 30);
  EXPECT_EQ(byte_ticks(0, 5).at, (std::vector<std::uint64_t>{0, 1}));
  EXPECT_LE(byte_ticks(UINT64_MAX, 5).at.size(), 6U);
  EXPECT_EQ(time_ticks(45, 8).at(1), 10);
  EXPECT_EQ(time_ticks(3600, 8).at(1), 600);
  EXPECT_EQ(time_ticks(0, 8).size(), 1U);
  EXPECT_LE(time_ticks(1e7, 8).size(), 9U);
  EXPECT_LE(time_ticks(1e-7, 8).size(), 9U);
}

TEST(Chart, ThePictureAloneHasItsOwnStyleForLightAndDark) {
  const std::string svg = svg_report(scan_picture());
  EXPECT_NE(svg.find("<style>"), std::string::npos);
  EXPECT_NE(svg.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find("href"), std::string::npos);
  EXPECT_LT(svg_report(hour_picture()).size(), 200'000U);
}

}  // namespace
}  // namespace lowtide::chart_test

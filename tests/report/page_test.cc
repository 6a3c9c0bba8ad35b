#include "report/page.h"

#include <gtest/gtest.h>

#include <regex>

#include "lowtide/command/terminal.h"
#include "report/markup.h"
#include "report/report.h"
#include "verdict/file_rows.h"
#include "verdict/pictures.h"
#include "verdict/summary.h"

namespace lowtide::page_test {
namespace {

bool has(const std::string& page, const std::string& words) {
  return page.find(words) != std::string::npos;
}

// data-bytes of the cell with that key; empty where it is unknown or not there.
std::string cell(const std::string& page, const std::string& key) {
  std::smatch found;
  const std::regex pattern("data-key=\"" + key + "\" data-bytes=\"([^\"]*)\"");
  return std::regex_search(page, found, pattern) ? found[1].str() : "";
}

TEST(Page, AnHourWithTenFilesAndFiveProcessesStaysBelow500KB) {
  EXPECT_LT(html_report(hour_picture()).size(), 500'000U);
}

TEST(Page, ALongCommandDoesNotMakeItLong) {
  Trace trace = hour_picture();
  trace.command = {"python", "-c", std::string(1'000'000, 'x')};
  const std::string page = html_report(trace);
  EXPECT_LT(page.size(), 500'000U);
  EXPECT_TRUE(has(page, "python -c xxx"));
}

TEST(Page, NeedsNoNetwork) {
  std::string page = html_report(scan_picture());
  page = std::regex_replace(page, std::regex("xmlns=\"http://www.w3.org/2000/svg\""), "");
  EXPECT_FALSE(has(page, "http"));
  EXPECT_FALSE(has(page, "src="));
  EXPECT_FALSE(has(page, "@import"));
  EXPECT_FALSE(has(page, "url(h"));
}

TEST(Page, NothingFromTheTraceBecomesMarkup) {
  const std::string page = html_report(hostile_picture());
  EXPECT_FALSE(has(page, "<script>alert"));
  EXPECT_FALSE(has(page, "</script><script>"));
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_FALSE(has(page, "<b>machine"));
  EXPECT_FALSE(has(page.substr(0, page.find("id=\"data\"")), "\"onload"));
  EXPECT_FALSE(has(page, "<!--"));
  EXPECT_FALSE(has(page, "\xff"));
  EXPECT_FALSE(has(page, "\x01"));
  EXPECT_TRUE(has(page, "&lt;/script&gt;&lt;script&gt;alert(2)&lt;/script&gt;.bin"));
  std::size_t scripts = 0;
  for (std::size_t at = page.find("<script"); at != std::string::npos;
       at = page.find("<script", at + 1)) {
    ++scripts;
  }
  EXPECT_EQ(scripts, 2U);  // the data and the program
}

TEST(Page, TablesShowStartPeakAndEndOfTheTrace) {
  const Trace trace = scan_picture();
  const std::string page = html_report(trace);
  const Peak peak = peak_of(trace);
  EXPECT_EQ(cell(page, "peak.rss"), std::to_string(peak.rss.value()));
  EXPECT_EQ(cell(page, "peak.anon"), std::to_string(peak.anon.value()));
  EXPECT_EQ(cell(page, "peak.page_cache"), std::to_string(peak.page_cache.value()));
  EXPECT_EQ(cell(page, "start.file"), std::to_string(start_of(trace).file.value()));
  EXPECT_EQ(cell(page, "end.file"), std::to_string(end_of(trace).file.value()));
  const FileRow row = file_rows(trace).at(0);
  EXPECT_EQ(row.path, "/data/shards/train.bin");
  EXPECT_EQ(cell(page, "files.0.peak_mapped"), std::to_string(row.peak_mapped.value()));
  EXPECT_EQ(cell(page, "files.0.size"), std::to_string(row.size.value()));
}

TEST(Page, UnknownNumbersAreCalledUnknown) {
  const std::string page = html_report(hole_picture(0, 1));
  EXPECT_EQ(cell(page, "peak.rss"), "");
  EXPECT_TRUE(has(page, "data-key=\"peak.rss\">unknown</td>"));
  EXPECT_TRUE(has(page, "data-key=\"files.0.peak_mapped\">unknown</td>"));
  EXPECT_FALSE(has(page, "data-bytes=\"0\""));
  EXPECT_TRUE(has(page, "heap (unknown)"));
}

TEST(Page, TellsHowTheRunEndedAndWhatTheMeasurementCost) {
  EXPECT_TRUE(has(html_report(one_reading_picture()), "killed by signal 11"));
  EXPECT_TRUE(has(html_report(scan_picture()), "exit code 0"));
  EXPECT_TRUE(
      has(html_report(scan_picture()), "300 readings took 0.21 s of processor time: 0.4 %"));
  Trace killed = scan_picture();
  killed.ending.reset();
  killed.cut = true;
  EXPECT_TRUE(has(html_report(killed), "unknown: the trace stops here"));
  EXPECT_TRUE(has(html_report(killed), "was incomplete"));
  EXPECT_TRUE(has(page_cost(killed), "Unknown"));
}

TEST(Page, HasAVerdictMarksAndWords) {
  const std::string page = html_report(scan_picture());
  EXPECT_TRUE(has(page, "data-kind=\"mapped-files\""));
  EXPECT_TRUE(has(page, "epoch 1/3"));
  EXPECT_TRUE(has(page, "What do these terms mean?"));
  EXPECT_TRUE(has(page, "<title>Memory of python train.py --epochs 3</title>"));
  EXPECT_TRUE(has(page, "2026-09-21"));
}

TEST(Page, TheHeadlineComesFirstThenThePictureThenTheEvidence) {
  const std::string page = html_report(scan_picture());
  const std::size_t headline = page.find("class=\"verdict\""), picture = page.find("<figure"),
                    levels = page.find("Start, peak, end"), evidence = page.find(">Evidence<"),
                    files = page.find(">Files<");
  EXPECT_LT(headline, picture);
  EXPECT_LT(picture, levels);
  EXPECT_LT(levels, evidence);
  EXPECT_LT(evidence, files);
  EXPECT_LT(files, page.size());
}

TEST(Page, LibrariesAreOneRowThatUnfolds) {
  Trace trace = scan_picture();
  for (Reading& reading : trace.readings) {
    if (!reading.files) continue;
    for (int i = 0; i < 45; ++i) {
      reading.files->push_back(
          file_of("/opt/lib" + std::to_string(i) + ".so", kMiB, 2 * kMiB, 3 * kMiB));
    }
  }
  const std::string table = page_files(trace);
  EXPECT_TRUE(has(table, "<summary>47 libraries</summary>"));
  std::size_t rows = 0;
  for (std::size_t at = table.find("<tr"); at != std::string::npos;
       at = table.find("<tr", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, 3U);  // the head, train.bin and the libraries
  EXPECT_EQ(cell(table, "libraries.peak_mapped"), std::to_string((45 + 36) << 20));
  EXPECT_EQ(cell(table, "libraries.size"), std::to_string((45 * 3 + 48) << 20));
  EXPECT_TRUE(has(table, "/opt/lib44.so"));
}

TEST(Page, SeveralProcessesHaveATableThatNamesTheOneThatLeaks) {
  EXPECT_EQ(page_processes(scan_picture()), "");
  Program run(4);
  const Trace trace = run.make([&](double part, Reading& reading) {
    reading.processes.push_back(process_of(100, 80 * kMiB));
    reading.processes.push_back(process_of(101, 90 * kMiB));
    reading.processes.push_back(process_of(102, (50 + 900 * part) * kMiB));
  });
  const std::string table = page_processes(trace);
  EXPECT_TRUE(has(table, "python (pid 102) <strong class=\"leaks\">leaks "));
  EXPECT_EQ(table.find("leaks "), table.rfind("leaks "));
  EXPECT_TRUE(has(table, "python (pid 101)"));
  EXPECT_LT(table.find("pid 102"), table.find("pid 101"));
}

TEST(Page, AnEmptyTraceIsAPageToo) {
  const std::string page = html_report(empty_picture());
  EXPECT_TRUE(has(page, "No mapped files were seen."));
  EXPECT_FALSE(has(page, "nan"));
}

TEST(Page, ManyFilesAreCutAndCounted) {
  Trace trace = scan_picture(1);
  for (int i = 0; i < 200; ++i) {
    trace.readings[0].files->push_back(file_of("/data/" + std::to_string(i), 4096, 4096, 4096));
  }
  EXPECT_TRUE(has(html_report(trace), "141 smaller ones are not shown"));
}

TEST(Markup, NumbersAndNamesForPeople) {
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(coordinate(-0.01), "0");
  EXPECT_EQ(coordinate(12.25), "12.2");
  EXPECT_EQ(time_text(0.25), "0.25 s");
  EXPECT_EQ(time_text(90), "1 min 30 s");
  EXPECT_EQ(time_text(3900), "1 h 5 min");
  EXPECT_EQ(short_name("/a/b/verylongname.bin", 11), "veryl\u2026e.bin");
  EXPECT_EQ(short_text("epoch 1/3", 16), "epoch 1/3");
  EXPECT_EQ(escaped("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
  EXPECT_EQ(escaped("a\u202egpj"),
            "&#39;a\\xe2\\x80\\xaegpj&#39;");                  // an override of the direction
  EXPECT_EQ(escaped("a\u009b1m"), "&#39;a\\xc2\\x9b1m&#39;");  // a terminal's escape
}

}  // namespace
}  // namespace lowtide::page_test

// memory_profiler's .dat: files that mprof wrote, and back to what mprof reads.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "lowtide/error.h"
#include "meter/sums.h"
#include "report/report.h"
#include "support/golden.h"
#include "support/thrown.h"
#include "verdict/summary.h"
#include "verdict/traces.h"
#include "verdict/verdict.h"

namespace lowtide::dat_test {
namespace {

const std::filesystem::path kFolder = golden("dat");

std::string read(const std::string& name) {
  std::ifstream in(kFolder / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string error_of(const std::string& text) {
  return thrown<FormatError>([&] { (void)parse_dat(text, "x.dat"); });
}

TEST(Dat, OfMprofIsReadAsMprofReadsIt) {
  std::istringstream rows(read("expected.txt"));
  std::string name;
  std::size_t readings = 0, children = 0, calls = 0, files = 0;
  for (double peak_mib = 0; rows >> name >> readings >> children >> peak_mib >> calls; ++files) {
    SCOPED_TRACE(name);
    const Trace trace = parse_dat(read(name), name);
    EXPECT_EQ(trace.readings.size(), readings);
    std::size_t seen_children = 0;
    std::uint64_t peak = 0;
    for (const Reading& reading : trace.readings) {
      seen_children += reading.processes.size() - 1;
      peak = std::max(peak, rss_of(reading.processes[0]).value_or(0));
    }
    EXPECT_EQ(seen_children, children);
    EXPECT_NEAR(static_cast<double>(peak) / kMiB, peak_mib, 1e-6);
    EXPECT_EQ(peak % 4096, 0u);
    EXPECT_EQ(trace.marks.size(), 2 * calls);
    ASSERT_EQ(trace.command.size(), 2u);
    EXPECT_TRUE(trace.command[1].ends_with(" of memory.py")) << trace.command[1];
    EXPECT_FALSE(trace.cut);
    EXPECT_LT(trace.readings.back().seconds, 10);
  }
  EXPECT_EQ(files, 2u);
}

TEST(Dat, OfMprofIsWrittenAgainLineByLine) {
  std::istringstream lines(read("children.dat"));
  const Trace trace = parse_dat(lines.str(), "x");
  std::istringstream again(dat_report(trace));
  std::string line, other;
  while (std::getline(lines, line)) {
    ASSERT_TRUE(std::getline(again, other));
    // A child is read a moment after its parent; a reading has one time.
    if (line.starts_with("CHLD")) line.resize(line.rfind(' ')), other.resize(other.rfind(' '));
    EXPECT_EQ(line, other);
  }
  EXPECT_FALSE(std::getline(again, other));
}

TEST(Dat, KeepsRssOfEachProcess) {
  Trace trace = fork_server_trace(3);
  trace.readings.resize(20);
  trace.marks = {{trace.readings[5].seconds, "epoch 1"}};
  const Trace back = parse_dat(dat_report(trace), "x");
  ASSERT_EQ(back.readings.size(), trace.readings.size());
  for (std::size_t i = 0; i < trace.readings.size(); ++i) {
    EXPECT_EQ(sums_of(back.readings[i]).rss, sums_of(trace.readings[i]).rss) << i;
    EXPECT_NEAR(back.readings[i].seconds - back.readings[0].seconds,
                trace.readings[i].seconds - trace.readings[0].seconds, 2e-4);
  }
  ASSERT_EQ(back.marks.size(), 1u);
  EXPECT_EQ(back.marks[0].text, "epoch_1");
  EXPECT_EQ(back.command, trace.command);
}

TEST(Dat, TellsThatTheRestIsUnknown) {
  const Trace trace = parse_dat(read("children.dat"), "x");
  EXPECT_EQ(trace.readings[0].processes[0].anon,
            Figure::unknown("memory_profiler records only RSS"));
  const Verdict verdict = judge(trace);
  EXPECT_EQ(verdict.kind, VerdictKind::too_short);
  EXPECT_TRUE(verdict.headline.starts_with("No verdict")) << verdict.headline;
  EXPECT_NE(peak_of(trace).rss, std::nullopt);
  EXPECT_EQ(peak_of(trace).anon, std::nullopt);
}

TEST(Dat, IsReadUpToWhereItWasCut) {
  const Trace trace = parse_dat("CMDLINE a\nMEM 1.5 100.5\nMEM 2.5 10", "x");
  EXPECT_TRUE(trace.cut);
  EXPECT_EQ(trace.readings.size(), 1u);
}

TEST(Dat, NamesTheBadLine) {
  for (const char* bad : {"MEM", "MEM x 1", "MEM 1", "MEM nan 1", "MEM -1 1", "MEM 1e300 1",
                          "CHLD x 1 1", "CHLD 1 1", "CHLD -1 1 1", "FUNC f 1 1 1"}) {
    EXPECT_EQ(error_of(std::string("MEM 1 1\n") + bad + "\n").substr(0, 15), "x.dat: line 2: ")
        << bad;
  }
  EXPECT_EQ(error_of("CMDLINE a\n"),
            "x.dat: expected lines \"MEM <MiB> <seconds>\" as mprof writes them, found none");
  EXPECT_EQ(error_of("MEM 1 1\nNEWS of another kind\n\n"), "no error");
}

TEST(Dat, HasACommandOfOneLine) {
  Trace trace = flat_trace(1);
  trace.command = {"python", "a b.py", "", "c\nd"};
  EXPECT_TRUE(dat_report(trace).starts_with("CMDLINE python 'a b.py' '' c d\nMEM "));
}

}  // namespace
}  // namespace lowtide::dat_test

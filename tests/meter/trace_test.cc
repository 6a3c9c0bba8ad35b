#include "meter/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "lowtide/error.h"
#include "support/golden.h"
#include "support/thrown.h"

namespace lowtide::trace_test {
namespace {

const std::string kOddName = "a b\n\"c\\\t\x01\xff\xfe \xc3\xbc?\r";

ProcessReading process(int pid) {
  ProcessReading p;
  p.pid = pid;
  p.parent = 1;
  p.start_ticks = 18446744073709551615ULL;
  p.name = kOddName;
  p.anon = Figure::known(123456789012);
  p.file = Figure::known(0);
  p.shmem = Figure::unknown("no permission");
  p.page_tables = Figure::unknown(kOddName);
  p.swap = Figure::unknown("no permission");
  p.pss = Figure::unknown("");
  p.minor_faults = Figure::known(18446744073709551615ULL);
  p.major_faults = Figure::unknown(kOddName);
  p.disk_bytes = Figure::known(5);
  p.asked_bytes = Figure::known(6);
  p.threads = Figure::known(7);
  if (pid < 0) p.rss_alone = 8;
  return p;
}

FileReading file(const std::string& path, bool deleted) {
  return {.path = path,
          .deleted = deleted,
          .device = 64768,
          .inode = 18446744073709551615ULL,
          .size = Figure::known(1ULL << 50),
          .mapped = Figure::known(4096),
          .pss = Figure::unknown("no permission"),
          .cached = Figure::unknown("the kernel has no cachestat")};
}

Trace odd_trace() {
  Trace trace;
  trace.command = {"python", "", kOddName};
  trace.root_pid = 4711;
  trace.started_unix_ms = 1790000000123;
  trace.machine = "Linux 6.18, 2 cores, 24 GiB";
  Reading first{
      .seconds = 0.1, .processes = {process(4711), process(-1)}, .files = {}, .group = {}};
  first.files.emplace();
  Reading second{.seconds = 1.0 / 3, .processes = {}, .files = {}, .group = {}};
  second.files = {file(kOddName, true), file("", false)};
  second.group = GroupReading{.path = "/sys/fs/cgroup/a b",
                              .version = 2,
                              .usage = Figure::known(1),
                              .anon = Figure::known(2),
                              .inactive_file = Figure::known(3),
                              .active_file = Figure::known(4),
                              .working_set = Figure::known(5),
                              .limit = Figure::unknown("no limit"),
                              .limit_hits = Figure::known(7),
                              .oom_kills = Figure::known(8)};
  trace.readings = {first, second, {.seconds = 1e6, .processes = {}, .files = {}, .group = {}}};
  trace.marks = {{0, kOddName}, {0.1, "epoch 1"}, {1e7, ""}};
  trace.ending = Ending{1e6 + 0.25, 139, 1e-9};
  return trace;
}

std::string error_of(std::string_view text) {
  return thrown<FormatError>([&] { (void)parse_trace(text, "x.trace"); });
}

const std::string kHeader = "lowtide-trace 1 1 0 \"\"\n";

TEST(Trace, ComesBackAsItWas) {
  const Trace trace = odd_trace();
  EXPECT_EQ(parse_trace(trace_text(trace), "x"), trace);
  Trace self;
  EXPECT_EQ(parse_trace(trace_text(self), "x"), self);
  self.ending = Ending{1, std::nullopt, 0};
  EXPECT_EQ(parse_trace(trace_text(self), "x"), self);
}

TEST(Trace, IsAsciiLines) {
  const std::string text = trace_text(odd_trace());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 3 + 3 + 1);
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f));
}

TEST(Trace, IsReadableUpToWhereverItWasCut) {
  const Trace whole = odd_trace();
  const std::string text = trace_text(whole);
  const std::size_t header = text.find('\n') + 1;
  for (std::size_t size = 0; size < header; ++size) {
    EXPECT_NE(error_of(text.substr(0, size)), "no error") << size;
  }
  for (std::size_t size = header; size <= text.size(); ++size) {
    const Trace trace = parse_trace(std::string_view(text).substr(0, size), "x");
    const bool at_line_end = text[size - 1] == '\n';
    EXPECT_EQ(trace.cut, !at_line_end) << size;
    EXPECT_EQ(trace.ending.has_value(), size == text.size());
    EXPECT_LE(trace.readings.size(), whole.readings.size());
    for (std::size_t i = 0; i < trace.readings.size(); ++i) {
      EXPECT_EQ(trace.readings[i], whole.readings[i]);
    }
  }
}

TEST(Trace, LeavesOutALastLineThatIsNone) {
  const Trace trace = parse_trace(kHeader + "r 1\nr 2 p 1 " + std::string(20, '\0') + "\n", "x");
  EXPECT_TRUE(trace.cut);
  EXPECT_EQ(trace.readings.size(), 1u);
}

TEST(Trace, OfANewerFormatIsRefusedByName) {
  EXPECT_EQ(error_of("lowtide-trace 2 other things\nq\n"),
            "x.trace: line 1: written by a newer lowtide (format 2; this version reads format 1)");
  EXPECT_EQ(error_of("lowtide-trace 0 1 0 \"\"\n"), "x.trace: line 1: unknown format 0");
}

TEST(Trace, TellsWhatIsNone) {
  EXPECT_EQ(error_of(""),
            "x.trace: not a trace of lowtide: expected it to begin with "
            "\"lowtide-trace \", found ''");
  EXPECT_EQ(error_of("CMDLINE a\nMEM 1 2\n").substr(0, 32), "x.trace: not a trace of lowtide:");
}

TEST(Trace, NamesTheBadLine) {
  const std::string good = "r 9\n";
  for (const char* bad : {"",
                          " ",
                          "r",
                          "r ",
                          "q 1",
                          "r x",
                          "r nan",
                          "r inf",
                          "r -1",
                          "r 1e999",
                          "r 1e13",
                          "r 1 ",
                          "r 1  p",
                          "r 1 p 1",
                          "r 1 f \"x\" 1 1 1 1 1 1",
                          "r 1 F F",
                          "r 1 F f x 1 1 1 1 1 1",
                          "r 1 F f \"x\" 1 1 ?0 1 1 1",
                          "r 1 F f \"x\" 1 1 -1 1 1 1",
                          "m 1",
                          "m 1 \"a",
                          "m 1 \"a\"b",
                          "m 1 \"\\q\"",
                          "m 1 \"\\x4\"",
                          "m 1 \"\\xzz\"",
                          "m 1 \"\t\"",
                          "m 1 \"a\" 2",
                          "e 1",
                          "e 1 -",
                          "e 1 99999999999 1",
                          "e 1 0 1 1",
                          "r 1 F f \"x\" 1 1 18446744073709551616 1 1 1"}) {
    EXPECT_EQ(error_of(kHeader + bad + "\n" + good).substr(0, 17), "x.trace: line 2: ") << bad;
  }
  EXPECT_EQ(error_of(kHeader + good + "r 8\n" + good),
            "x.trace: line 3: a reading is older than the previous one");
  const std::string reason(300, 'w');
  EXPECT_EQ(error_of(kHeader + "r 1 F f \"x\" 1 1 ?\"" + reason + "\" 1 1 1\n" + good),
            "x.trace: line 2: a reason is too long");
}

TEST(Trace, ShortensAReasonThatNobodyWouldRead) {
  Trace trace;
  trace.readings.push_back({.seconds = 0, .processes = {process(1)}, .files = {}, .group = {}});
  trace.readings[0].processes[0].anon = Figure::unknown(std::string(1000, 'w'));
  const Trace back = parse_trace(trace_text(trace), "x");
  EXPECT_EQ(back.readings[0].processes[0].anon, Figure::unknown(std::string(200, 'w')));
}

TEST(Trace, OfTheGoldenFolderIsReadAsItWasWritten) {
  const auto folder = golden("trace");
  const auto read = [&](const char* name) {
    std::ifstream in(folder / name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string text = read("whole.trace");
  const Trace trace = parse_trace(text, "x");
  EXPECT_EQ(trace.command[2], "a\xc3\xbc b\n");
  EXPECT_EQ(trace.readings.at(1).processes.at(1).threads, Figure::unknown("no permission"));
  EXPECT_EQ(trace.readings.at(1).files->at(1).path, "/tmp/\xff\\x");
  EXPECT_EQ(trace.ending->exit_code, 139);
  EXPECT_EQ(trace_text(trace), text);  // what once was written is still written so
  EXPECT_TRUE(parse_trace(read("cut.trace"), "x").cut);
}

TEST(Trace, OfAnHourIsSmall) {
  Trace trace = odd_trace();
  trace.readings.clear();
  for (int i = 0; i < 4000; ++i) {
    Reading reading{.seconds = i * 0.9000123, .processes = {}, .files = {}, .group = {}};
    for (int p = 0; p < 3; ++p) {
      ProcessReading one{.pid = 123456 + p,
                         .parent = 123456,
                         .start_ticks = 123456789,
                         .name = "python",
                         .anon = Figure::known(12345678901),
                         .file = Figure::known(1234567890),
                         .shmem = Figure::known(12345678),
                         .page_tables = Figure::known(12345678),
                         .swap = Figure::known(0),
                         .pss = Figure::unknown("not asked now"),
                         .minor_faults = Figure::known(12345678),
                         .major_faults = Figure::known(12345),
                         .disk_bytes = Figure::known(123456789012),
                         .asked_bytes = Figure::known(123456789012),
                         .threads = Figure::known(12)};
      reading.processes.push_back(one);
    }
    if (i % 20 == 0)
      reading.files = std::vector<FileReading>(12, file(std::string(60, 'n'), false));
    trace.readings.push_back(reading);
  }
  const std::string text = trace_text(trace);
  EXPECT_LT(text.size(), 2'000'000u);
  EXPECT_EQ(parse_trace(text, "x").readings, trace.readings);
}

}  // namespace
}  // namespace lowtide::trace_test

#include "meter/recording.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "lowtide/error.h"
#include "os/sys.h"
#include "os/temp_folder.h"
#include "report/report.h"
#include "support/thrown.h"
#include "verdict/traces.h"

namespace lowtide::recording_test {
namespace {

std::string read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

ssize_t disk_full(int, const void*, std::size_t) {
  errno = ENOSPC;
  return -1;
}

TEST(Recording, TellsWhatItsTraceHolds) {
  const Trace trace = leak_trace(1);
  const Recording recording = recording_of(trace);
  EXPECT_EQ(recording.readings(), trace.readings.size());
  EXPECT_DOUBLE_EQ(recording.seconds(), trace.ending->seconds);
  EXPECT_NEAR(recording.cost(), 0.001, 1e-12);
  EXPECT_EQ(recording.verdict().kind, VerdictKind::heap_leak);
  EXPECT_FALSE(recording.cut());
  EXPECT_GT(*recording.peak().rss, 0u);
  EXPECT_GT(*recording.growth().anon, 0);
}

TEST(Recording, IsSavedByItsSuffix) {
  const TempFolder folder;
  const Trace trace = leak_trace(1);
  const Recording recording = recording_of(trace);
  for (const char* name : {"a b\n.html", "x.svg", "x.json", "x.dat", "x.trace"}) {
    recording.save(folder / name);
  }
  EXPECT_EQ(read(folder / "a b\n.html"), recording.html());
  EXPECT_EQ(read(folder / "x.svg"), recording.svg());
  EXPECT_EQ(read(folder / "x.json"), recording.json());
  EXPECT_EQ(read(folder / "x.dat"), dat_report(trace));
  EXPECT_EQ(read(folder / "x.trace"), trace_text(trace));
}

TEST(Recording, IsLoadedByItsFirstBytes) {
  const TempFolder folder;
  const Recording recording = recording_of(leak_trace(1));
  recording.save(folder / "x.trace");
  recording.save(folder / "x.dat");
  std::filesystem::rename(folder / "x.dat", folder / "y.trace");
  EXPECT_EQ(Recording::load(folder / "x.trace").json(), recording.json());
  const Recording dat = Recording::load(folder / "y.trace");
  EXPECT_EQ(dat.readings(), recording.readings());
  EXPECT_EQ(dat.peak().rss, recording.peak().rss);
  EXPECT_FALSE(dat.cut());  // mprof writes no ending
}

TEST(Recording, RefusesWhatItCannotLoad) {
  const TempFolder folder;
  EXPECT_THROW((void)Recording::load(folder / "none"), IoError);
  EXPECT_THROW((void)Recording::load(folder.path()), IoError);
  EXPECT_THROW((void)Recording::load(folder.write("empty", "")), FormatError);
  EXPECT_THROW((void)Recording::load(folder.write("html", "<html>")), FormatError);
  EXPECT_THROW((void)Recording::load(folder.write("newer", "lowtide-trace 2\n")), FormatError);
}

TEST(Recording, NamesTheSuffixesItKnows) {
  const TempFolder folder;
  for (const char* name : {"x.png", "x", "html", "x.html/y"}) {
    const std::string text =
        thrown<std::invalid_argument>([&] { recording_of(Trace{}).save(folder / name); });
    EXPECT_NE(text.find(".html, .svg, .json, .dat, .trace"), std::string::npos) << text;
  }
}

TEST(Recording, IsNotThereAfterAFailure) {
  const TempFolder folder;
  const Recording recording = recording_of(flat_trace(1));
  EXPECT_THROW(recording.save(folder / "none/x.json"), IoError);
  const sys::Fault fault(sys::table.write, &disk_full);
  EXPECT_THROW(recording.save(folder / "x.json"), IoError);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace lowtide::recording_test

#include "verdict/summary.h"

#include <gtest/gtest.h>

#include "meter/sums.h"
#include "verdict/traces.h"

namespace lowtide::summary_test {
namespace {

Reading at(double seconds, std::vector<ProcessReading> processes) {
  Reading reading;
  reading.seconds = seconds;
  reading.processes = std::move(processes);
  return reading;
}

ProcessReading only(std::uint64_t anon, std::uint64_t file, std::uint64_t shmem) {
  ProcessReading process;
  process.anon = Figure::known(anon);
  process.file = Figure::known(file);
  process.shmem = Figure::known(shmem);
  process.page_tables = Figure::unknown("no permission");
  return process;
}

TEST(Summary, PeaksAreOfOneMoment) {
  Trace trace;
  trace.readings = {at(0, {only(100, 1, 0)}), at(1, {only(10, 200, 5), only(10, 20, 3)})};
  const Peak peak = peak_of(trace);
  EXPECT_EQ(peak.anon, 100u);
  EXPECT_EQ(peak.file, 220u);
  EXPECT_EQ(peak.shmem, 8u);
  EXPECT_EQ(peak.rss, 248u);  // not 100 + 220 + 8
  EXPECT_EQ(peak.page_tables, std::nullopt);
  EXPECT_EQ(peak.page_cache, std::nullopt);
}

TEST(Summary, SumsWhatIsKnown) {
  ProcessReading hidden;
  const Sums sums = sums_of(at(0, {only(1, 2, 3), hidden}));
  EXPECT_EQ(sums.rss, 6u);
  EXPECT_EQ(sums.pss, std::nullopt);
  EXPECT_EQ(sums_of(at(0, {hidden})).rss, std::nullopt);
  EXPECT_EQ(sums_of(at(0, {})).rss, std::nullopt);
  ProcessReading sum_only;
  sum_only.rss_alone = 7;
  EXPECT_EQ(sums_of(at(0, {only(1, 2, 3), sum_only})).rss, 13u);
  EXPECT_EQ(sums_of(at(0, {only(UINT64_MAX, 2, 3)})).rss, UINT64_MAX);
}

TEST(Summary, PssIsASumOnlyOfAll) {
  ProcessReading asked = only(1, 2, 3), not_asked = only(1, 2, 3);
  asked.pss = Figure::known(5);
  EXPECT_EQ(sums_of(at(0, {asked, asked})).pss, 10u);
  EXPECT_EQ(sums_of(at(0, {asked, not_asked})).pss, std::nullopt);
}

TEST(Summary, GrowthLeavesOutTheStart) {
  Trace trace;
  for (int i = 0; i <= 20; ++i) {
    trace.readings.push_back(at(i, {only(i < 2 ? 0 : 1000 - static_cast<unsigned>(i), 5, 0)}));
  }
  const Growth growth = growth_of(trace);
  EXPECT_EQ(growth.anon, -18);
  EXPECT_EQ(growth.file, 0);
  EXPECT_EQ(growth.page_tables, std::nullopt);
  EXPECT_EQ(growth_of(Trace{}).rss, std::nullopt);
}

TEST(Summary, TheStartIsATenth) {
  Trace trace;
  EXPECT_EQ(first_settled(trace), 0u);
  for (int i = 0; i <= 100; ++i) trace.readings.push_back(at(5 + i, {}));
  EXPECT_EQ(first_settled(trace), 10u);
  trace.readings.resize(1);
  EXPECT_EQ(first_settled(trace), 0u);
}

TEST(Summary, LastsToItsEnding) {
  Trace trace;
  trace.readings = {at(3, {})};
  EXPECT_EQ(seconds_of(trace), 3);
  trace.ending = Ending{4, 0, 0};
  EXPECT_EQ(seconds_of(trace), 4);
}

}  // namespace
}  // namespace lowtide::summary_test

#include "meter/thinned.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lowtide::thinned_test {
namespace {

Reading at(double seconds, std::uint64_t anon) {
  Reading reading;
  reading.seconds = seconds;
  ProcessReading process;
  process.pid = 7;
  process.anon = Figure::known(anon);
  process.pss = Figure::unknown("not asked now");
  reading.processes.push_back(process);
  return reading;
}

std::uint64_t most(const std::vector<Reading>& readings) {
  std::uint64_t bytes = 0;
  for (const Reading& reading : readings) {
    bytes = std::max(bytes, reading.processes[0].anon.value.value_or(0));
  }
  return bytes;
}

TEST(Thinned, KeepsEveryReadingOfAShortRun) {
  Thinned thinned;
  for (int i = 0; i < 3000; ++i) EXPECT_TRUE(thinned.add(at(0.1 * i, 1))) << i;
  EXPECT_EQ(thinned.readings().size(), 3000u);
  EXPECT_FALSE(thinned.flush());
}

TEST(Thinned, KeepsAWeekInSomeThousandReadingsWithItsPeakItsStartAndItsEnd) {
  Thinned thinned;
  std::size_t written = 0;
  constexpr int kWeek = 7 * 24 * 3600;
  for (int i = 0; i < kWeek; ++i) {
    written += thinned.add(at(i, i == 300001 ? 999 : static_cast<unsigned>(i % 7))).has_value();
  }
  written += thinned.flush().has_value();
  const std::vector<Reading> kept = thinned.readings();
  EXPECT_LE(kept.size(), Thinned::kMost);
  EXPECT_GE(kept.size(), Thinned::kMost / 3);
  EXPECT_LE(written, 10 * Thinned::kMost);
  EXPECT_EQ(most(kept), 999u);
  EXPECT_EQ(kept.front().seconds, 0);
  EXPECT_GE(kept.back().seconds, kWeek * 0.999);
  EXPECT_EQ(
      std::adjacent_find(kept.begin(), kept.end(),
                         [](const Reading& a, const Reading& b) { return a.seconds >= b.seconds; }),
      kept.end());
}

TEST(Thinned, WritesDownWhatItKeepsAndInOrder) {
  Thinned thinned;
  double last = -1;
  for (int i = 0; i < 50000; ++i) {
    const auto kept = thinned.add(at(i * 0.5, static_cast<unsigned>((i * 7919) % 1000)));
    if (!kept) continue;
    EXPECT_GT(kept->seconds, last);
    last = kept->seconds;
  }
}

TEST(Thinned, KeepsTheFilesAndThePssOfThoseItLeavesOut) {
  Thinned thinned;
  constexpr int kLong = 100000;  // so late, two readings within 25 s become one
  (void)thinned.add(at(0, 1));
  (void)thinned.add(at(kLong, 1));
  Reading dear = at(kLong + 1, 5);
  dear.files.emplace(1);
  dear.group.emplace();
  dear.processes[0].pss = Figure::known(3);
  EXPECT_FALSE(thinned.add(dear));
  EXPECT_EQ(thinned.readings().size(), 3u);  // what is held back is told too
  const auto kept = thinned.add(at(kLong + 30, 9));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->processes[0].anon.value, 9u);
  EXPECT_EQ(kept->processes[0].pss.value, 3u);
  EXPECT_TRUE(kept->files && kept->group);
}

}  // namespace
}  // namespace lowtide::thinned_test

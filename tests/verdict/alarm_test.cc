// How often the verdict is wrong: many seeds of each shape, no false alarm and no missed leak.
#include <gtest/gtest.h>

#include "support/forked.h"
#include "verdict/traces.h"
#include "verdict/verdict.h"

namespace lowtide::alarm_test {
namespace {

// A sanitizer looks for faults of memory, which do not depend on the seed.
const std::uint64_t kSeeds = sanitized() ? 25 : 500;

int leaks_among(const Shape& shape, std::string* examples, bool expected) {
  int leaks = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const bool leak = judge(shape.make(seed)).kind == VerdictKind::heap_leak;
    leaks += leak ? 1 : 0;
    if (leak != expected) *examples += " " + std::to_string(seed);
  }
  return leaks;
}

class FalseAlarm : public testing::TestWithParam<Shape> {};
class MissedLeak : public testing::TestWithParam<Shape> {};

TEST_P(FalseAlarm, IsNeverRaised) {
  std::string seeds;
  EXPECT_EQ(leaks_among(GetParam(), &seeds, false), 0) << "seeds" << seeds;
}

TEST_P(MissedLeak, IsNone) {
  std::string seeds;
  EXPECT_EQ(leaks_among(GetParam(), &seeds, true), static_cast<int>(kSeeds)) << "seeds" << seeds;
}

const auto kName = [](const testing::TestParamInfo<Shape>& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(
    Shapes, FalseAlarm,
    testing::Values(Shape{"Flat", flat_trace}, Shape{"WarmUp", warm_up_trace},
                    Shape{"FullCache", full_cache_trace}, Shape{"Periodic", periodic_trace},
                    Shape{"SawTooth", saw_tooth_trace}, Shape{"Steps", steps_trace},
                    Shape{"Shrinking", shrinking_trace}, Shape{"ForkServer", fork_server_trace}),
    kName);

INSTANTIATE_TEST_SUITE_P(Shapes, MissedLeak,
                         testing::Values(Shape{"Steady", leak_trace},
                                         Shape{"UnderNoise", noisy_leak_trace},
                                         Shape{"UnderSawTooth", saw_tooth_leak_trace},
                                         Shape{"Stairs", stairs_leak_trace}),
                         kName);

}  // namespace
}  // namespace lowtide::alarm_test

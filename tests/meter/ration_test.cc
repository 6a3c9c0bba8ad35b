#include "meter/ration.h"

#include <gtest/gtest.h>

namespace lowtide::ration_test {
namespace {

constexpr Ration::Rule kPace{0.01, 0.02, 0.05, 0.001, 0.1};

struct Spent {
  int turns = 0;
  double spent_s = 0;
};

// Takes every ration as soon as it is due, each at the same cost.
Spent run(double for_s, double cost_s) {
  Ration ration(kPace);
  Spent run;
  double now = 0;
  while (now < for_s && run.turns < 1000000) {
    if (ration.due(now, cost_s)) {
      ration.taken(now, cost_s);
      ++run.turns;
      run.spent_s += cost_s;
    }
    now += std::max(ration.wait_s(now), 1e-6);
  }
  return run;
}

TEST(Ration, IsOftenAtFirstAndThenEveryTenthOfASecond) {
  EXPECT_GE(run(0.010, 50e-6).turns, 8);
  const int first = run(2, 50e-6).turns;
  EXPECT_GT(first, 80);
  EXPECT_LT(first, 120);
  EXPECT_NEAR(run(102, 50e-6).turns - first, 1000, 10);
}

TEST(Ration, StaysWithinItsShareWhateverItCosts) {
  for (const double cost_s : {1e-6, 1e-4, 1e-3, 0.01, 0.1, 1.0}) {
    for (const double for_s : {1.0, 10.0, 1000.0}) {
      const Spent done = run(for_s, cost_s);
      EXPECT_LE(done.spent_s, kPace.allowance_s + kPace.share * for_s + 1e-9)
          << cost_s << " over " << for_s;
    }
  }
}

TEST(Ration, IsNotKeptWaitingForLongerThanItsShareAsks) {
  const Spent done = run(1000, 0.01);  // 10 s may be spent, in turns of 10 ms
  EXPECT_GE(done.turns, 990);
}

TEST(Ration, DoesNotBeginWhatItCannotAfford) {
  const Ration ration(kPace);
  EXPECT_TRUE(ration.due(0, 0.02));
  EXPECT_FALSE(ration.due(0, 0.03));
  EXPECT_FALSE(ration.due(0.9, 0.03));
  EXPECT_TRUE(ration.due(1.1, 0.03));
}

}  // namespace
}  // namespace lowtide::ration_test

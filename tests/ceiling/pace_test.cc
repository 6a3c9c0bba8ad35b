#include "ceiling/pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ceiling/shim/mark.h"

namespace lowtide::ceiling::pace_test {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kStepNs = 50'000;

struct Seen {
  std::vector<std::uint64_t> samples;
  std::uint64_t looks = 0;

  [[nodiscard]] std::uint64_t peak() const { return *std::ranges::max_element(samples); }
  [[nodiscard]] std::uint64_t at(double share) {
    const auto place = samples.begin() +
                       static_cast<std::ptrdiff_t>(static_cast<double>(samples.size() - 1) * share);
    std::ranges::nth_element(samples, place);
    return *place;
  }
};

// Ten seconds of a reader that maps `rate` bytes a second from `start_ns` on. A look comes
// `late_ns` after it was due, a trim takes away everything.
Seen simulate(std::uint64_t limit_bytes, double rate, std::uint64_t late_ns,
              std::uint64_t start_ns = 0, std::uint64_t resident_bytes = 0) {
  Mark mark(limit_bytes);
  Pace pace{{.growing = 4'000'000'000, .starting = 1'000'000'000}};
  Seen seen;
  std::uint64_t look_ns = 0;
  double resident = static_cast<double>(resident_bytes);
  for (std::uint64_t now = 0; now < 10'000'000'000; now += kStepNs) {
    if (now >= start_ns) resident += rate * static_cast<double>(kStepNs) / 1e9;
    seen.samples.push_back(static_cast<std::uint64_t>(resident));
    if (now < look_ns) continue;
    ++seen.looks;
    pace.seen(seen.samples.back(), now);
    if (seen.samples.back() >= mark.bytes()) {
      resident = 0;
      mark.trimmed(pace.last_bytes());
      pace.released(0, now);
    }
    look_ns = now + pace.sleep_ns(mark.bytes(), mark.late_bytes()) + late_ns;
  }
  return seen;
}

TEST(Pace, AReaderOfAGigabyteASecondStaysWithinTheLimit) {
  for (const std::uint64_t limit : {16 * kMiB, 64 * kMiB, 256 * kMiB, 4096 * kMiB}) {
    for (const std::uint64_t late_ns : {100'000UL, 1'000'000UL}) {
      Seen seen = simulate(limit, 1e9, late_ns);
      EXPECT_LE(seen.peak(), limit + limit / 4) << limit << ' ' << late_ns;
      EXPECT_LE(seen.at(0.95), limit + limit / 20) << limit << ' ' << late_ns;
    }
  }
}

TEST(Pace, AReaderThatStartsAfterARestIsMetInTime) {
  for (const std::uint64_t limit : {64 * kMiB, 256 * kMiB}) {
    for (const std::uint64_t before : {std::uint64_t{0}, limit / 2, limit - limit / 7}) {
      const Seen seen = simulate(limit, 1e9, 200'000, 5'000'000'000, before);
      EXPECT_LE(seen.peak(), limit + limit / 4) << limit << ' ' << before;
    }
  }
}

TEST(Pace, LearnsToBeEarlyWhereLooksComeLate) {
  Seen seen = simulate(64 * kMiB, 4e9, 5'000'000);
  EXPECT_LE(seen.at(0.95), 68 * kMiB);
}

TEST(Pace, RestsWhileNothingGrows) {
  EXPECT_LE(simulate(256 * kMiB, 0, 0).looks, 400U);
  EXPECT_LE(simulate(256 * kMiB, 0, 0, 0, 223 * kMiB).looks, 400U);  // just below the mark
}

TEST(Mark, IsNeverBelowHalfTheLimit) {
  Mark mark(64 * kMiB);
  for (int trim = 0; trim < 100; ++trim) {
    mark.trimmed(1024 * kMiB);
    EXPECT_GE(mark.bytes(), 32 * kMiB);
  }
}

}  // namespace
}  // namespace lowtide::ceiling::pace_test

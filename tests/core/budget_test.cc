#include "core/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lowtide/bytes.h"
#include "support/thrown.h"

namespace lowtide::budget_test {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

std::string refusal_of(Budget* budget, const std::vector<Budget::Entry>& entries) {
  return thrown<std::invalid_argument>([&] { (void)budget->claim_all(entries); });
}

TEST(Budget, GivesBytesBackWhenTheClaimDies) {
  Budget budget(100);
  {
    const Claim claim = budget.claim(60, "rows");
    EXPECT_EQ(budget.free_bytes(), 40u);
    EXPECT_THROW((void)budget.claim(41, "more"), std::invalid_argument);
    EXPECT_EQ(budget.free_bytes(), 40u);
  }
  EXPECT_EQ(budget.free_bytes(), 100u);
  EXPECT_TRUE(budget.claims().empty());
  EXPECT_EQ(budget.limit_bytes(), 100u);
}

TEST(Budget, LetsAllOfItBeClaimed) {
  Budget budget(100);
  const Claim all = budget.claim(100, "all");
  const Claim nothing = budget.claim(0, "nothing");
  EXPECT_EQ(budget.free_bytes(), 0u);
}

TEST(Budget, MovesAClaimWithoutFreeingIt) {
  Budget budget(100);
  Claim first = budget.claim(30, "first");
  Claim second = budget.claim(20, "second");
  Claim moved(std::move(first));
  EXPECT_EQ(budget.free_bytes(), 50u);
  second = std::move(moved);
  EXPECT_EQ(budget.free_bytes(), 70u);
  second.release();
  second.release();
  EXPECT_EQ(budget.free_bytes(), 100u);
}

TEST(Budget, ListsClaimsOldestFirst) {
  Budget budget(100);
  Claim first = budget.claim(1, "first");
  const std::vector<Claim> others = budget.claim_all({{"second", 2}, {"third", 3}});
  first.release();
  const std::vector<Budget::Entry> alive = budget.claims();
  ASSERT_EQ(alive.size(), 2u);
  EXPECT_EQ(alive[0].what, "second");
  EXPECT_EQ(alive[1].what, "third");
  EXPECT_EQ(alive[1].bytes, 3u);
}

TEST(Budget, ClaimsAllOrNothing) {
  Budget budget(100);
  EXPECT_THROW((void)budget.claim_all({{"a", 60}, {"b", 60}}), std::invalid_argument);
  EXPECT_EQ(budget.free_bytes(), 100u);
}

TEST(Budget, TellsEveryClaimAndWhatWouldDo) {
  Budget budget(1024);
  EXPECT_EQ(refusal_of(&budget, {{"one row", 648}, {"read buffers", 65536}}),
            "memory: 1 KiB is too small: 648 B for one row + 64 KiB for read buffers = 64.6 KiB; "
            "use at least 65 KiB");
  EXPECT_EQ(refusal_of(&budget, {{"read buffers", 65536}}),
            "memory: 1 KiB is too small: 64 KiB for read buffers; use at least 64 KiB");
}

TEST(Budget, CountsClaimsAliveInTheRefusal) {
  Budget budget(64 << 20);
  const Claim index = budget.claim(40 << 20, "index");
  EXPECT_EQ(refusal_of(&budget, {{"two batches", (24 << 20) + 1}}),
            "memory: 64 MiB is too small: 40 MiB for index + 24.0 MiB for two batches = 64.0 MiB; "
            "use at least 65 MiB");
}

TEST(Budget, TellsWhatIsLackingWhereRoundedSizesWouldLookEqual) {
  Budget budget(66183);
  EXPECT_EQ(
      refusal_of(&budget, {{"one row", 648}, {"read buffers", 65536}}),
      "memory: 64.6 KiB is too small by 1 B: 648 B for one row + 64 KiB for read buffers = 64.6 "
      "KiB; use at least 65 KiB");
}

TEST(Budget, ProposesWhatReallyDoes) {
  for (const std::uint64_t bytes : {1ULL, 1023ULL, 1025ULL, (1ULL << 20) - 1, (1ULL << 20) + 1,
                                    (10ULL << 20) + 1, (1ULL << 40) + 7}) {
    Budget budget(0);
    const std::string text = refusal_of(&budget, {{"x", bytes}});
    const std::uint64_t proposed = parse_bytes(text.substr(text.rfind(" at least ") + 10));
    EXPECT_GE(proposed, bytes);
    EXPECT_LE(proposed, bytes + bytes / 10 + 1024);
    Budget enough(proposed);
    EXPECT_EQ(refusal_of(&enough, {{"x", bytes}}), "no error");
  }
}

TEST(Budget, RefusesSumsThatOverflow) {
  Budget budget(kMost);
  EXPECT_EQ(refusal_of(&budget, {{"a", kMost}, {"b", 1}}),
            "memory: 16777216 TiB is too small: 16777216 TiB for a + 1 B for b; no size is large "
            "enough");
  EXPECT_EQ(budget.free_bytes(), kMost);
}

TEST(Budget, NeverGoesOverTheLimitFromManyThreads) {
  Budget budget(10);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&budget] {
      for (int round = 0; round < 1000; ++round) {
        try {
          const Claim claim = budget.claim(4, "part");
          EXPECT_LE(budget.free_bytes(), 6u);
        } catch (const std::invalid_argument&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.free_bytes(), 10u);
}

// What a Lookahead does, without one: keeps as much as it may.
class Elastic {
 public:
  explicit Elastic(Budget& budget)
      : share_(budget, "ahead", [this](Share& share, std::uint64_t most) {
          ++asked;
          EXPECT_TRUE(share.resize(most));
        }) {}
  [[nodiscard]] bool resize(std::uint64_t bytes) { return share_.resize(bytes); }
  [[nodiscard]] std::uint64_t bytes() const { return share_.bytes(); }
  void ask_for_part() { share_.ask_for_part(); }

  int asked = 0;

 private:
  Share share_;
};

TEST(Share, MakesRoomForAClaim) {
  Budget budget(100);
  Elastic ahead(budget);
  ASSERT_TRUE(ahead.resize(90));
  EXPECT_EQ(budget.free_bytes(), 10u);
  EXPECT_EQ(budget.claims().back().what, "ahead");
  const Claim fits = budget.claim(10, "fits");
  EXPECT_EQ(ahead.asked, 0);
  const Claim claim = budget.claim(30, "rows");
  EXPECT_EQ(ahead.asked, 1);
  EXPECT_EQ(ahead.bytes(), 60u);
  EXPECT_FALSE(ahead.resize(61));
}

TEST(Share, IsSplitEvenlyWhenAClaimNeedsRoom) {
  Budget budget(100);
  Elastic large(budget), small(budget);
  ASSERT_TRUE(large.resize(80));
  ASSERT_TRUE(small.resize(20));
  const Claim claim = budget.claim(40, "rows");
  EXPECT_EQ(large.bytes(), 30u);
  EXPECT_EQ(small.bytes(), 20u) << "it has less than its part";
  EXPECT_EQ(small.asked, 0);
}

TEST(Share, IsNoneOfWhatARefusalCounts) {
  Budget budget(100);
  const Claim rows = budget.claim(30, "rows");
  Elastic ahead(budget);
  ASSERT_TRUE(ahead.resize(70));
  EXPECT_EQ(refusal_of(&budget, {{"more rows", 71}}),
            "memory: 100 B is too small: 30 B for rows + 71 B for more rows = 101 B; use at least "
            "1 KiB");
  EXPECT_EQ(ahead.asked, 0) << "nothing that it gives back would help";
}

TEST(Share, LeavesANewcomerItsPart) {
  Budget budget(100);
  Elastic first(budget);
  ASSERT_TRUE(first.resize(90));
  Elastic second(budget);
  EXPECT_FALSE(first.resize(95)) << "the newcomer comes first";
  second.ask_for_part();
  EXPECT_EQ(first.bytes(), 50u);
  ASSERT_TRUE(second.resize(40));
  ASSERT_TRUE(first.resize(60));
  Elastic third(budget);
  ASSERT_TRUE(first.resize(33));
  third.ask_for_part();
  EXPECT_EQ(second.asked, 0) << "enough is left without asking";
}

TEST(Share, GoesWithItsBytes) {
  Budget budget(100);
  {
    Elastic ahead(budget);
    ASSERT_TRUE(ahead.resize(100));
    EXPECT_EQ(budget.claimable_bytes(), 100u);
  }
  EXPECT_EQ(budget.free_bytes(), 100u);
  Elastic never_sized(budget);
  Elastic other(budget);
  ASSERT_TRUE(other.resize(1));
  EXPECT_FALSE(other.resize(2));
}

TEST(Budget, ProposesWhatDoesWithBuffersThatGrowWithIt) {
  const auto buffers = [](std::uint64_t limit) {
    return Budget::Entry{"buffers", std::clamp<std::uint64_t>(limit / 8, 32, 4096), 8, 4096};
  };
  for (const std::uint64_t rows : {1ULL, 100ULL, 1000ULL, 10'000ULL, 100'000ULL, 10'000'000ULL}) {
    Budget budget(64);
    const std::string text = refusal_of(&budget, {buffers(64), {"rows", rows}});
    if (text == "no error") continue;
    const std::uint64_t proposed = parse_bytes(text.substr(text.rfind(" at least ") + 10));
    Budget enough(proposed);
    EXPECT_EQ(refusal_of(&enough, {buffers(proposed), {"rows", rows}}), "no error") << rows;
    EXPECT_LE(proposed, rows + rows / 6 + 1100) << "nor much more";
  }
}

}  // namespace
}  // namespace lowtide::budget_test

#include "span/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <vector>

namespace lowtide::arena_test {
namespace {

TEST(Arena, GivesAlignedBlocksThatNeverOverlap) {
  constexpr std::size_t kPages = 64;
  Arena arena(kPages * Arena::kPageBytes);
  std::map<std::byte*, std::size_t> live;
  std::mt19937 random(1);
  std::size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (random() % 2 == 0) {
      const std::size_t size = 1 + random() % (12 * Arena::kPageBytes);
      std::byte* at = arena.allocate(size);
      if (at == nullptr) {
        ++refused;
        continue;
      }
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(at) % Arena::kPageBytes, 0U);
      const auto after = live.lower_bound(at);
      ASSERT_TRUE(after == live.end() || at + size <= after->first);
      if (after != live.begin()) {
        const auto before = std::prev(after);
        ASSERT_LE(before->first + before->second, at);
      }
      std::memset(at, 1, size);  // all of it is ours
      live[at] = size;
    } else if (!live.empty()) {
      auto victim = live.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % live.size()));
      arena.free(victim->first, victim->second);
      live.erase(victim);
    }
  }
  EXPECT_GT(refused, 0U) << "the arena was never full: the test is too easy";
  for (const auto& [at, size] : live) arena.free(at, size);
  EXPECT_NE(arena.allocate(kPages * Arena::kPageBytes), nullptr) << "nothing was lost";
}

TEST(Arena, FindsEveryFreeRunWhereverTheSearchStarts) {
  constexpr std::size_t kPages = 9;
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    Arena arena(kPages * Arena::kPageBytes);
    std::vector<std::byte*> pages;
    for (std::size_t i = 0; i < kPages; ++i) pages.push_back(arena.allocate(1));
    // Moves the start of the search to a random place.
    const std::size_t start = random() % kPages;
    arena.free(pages[start], 1);
    ASSERT_EQ(arena.allocate(1), pages[start]);
    std::size_t longest = 0, run = 0;
    for (std::byte* page : pages) {
      const bool freed = random() % 2 == 0;
      if (freed) arena.free(page, 1);
      run = freed ? run + 1 : 0;
      longest = std::max(longest, run);
    }
    ASSERT_EQ(arena.allocate((longest + 1) * Arena::kPageBytes), nullptr);
    ASSERT_TRUE(longest == 0 || arena.allocate(longest * Arena::kPageBytes) != nullptr) << round;
  }
}

TEST(Arena, ReturnsNothingWhenFullOrAskedForMoreThanItHas) {
  Arena arena(4 * Arena::kPageBytes);
  EXPECT_EQ(arena.allocate(4 * Arena::kPageBytes + 1), nullptr);
  std::byte* all = arena.allocate(4 * Arena::kPageBytes);
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(arena.allocate(1), nullptr);
  arena.free(all, 4 * Arena::kPageBytes);
  EXPECT_NE(arena.allocate(1), nullptr);
}

TEST(Arena, HasAtLeastOnePage) {
  Arena arena(1);
  EXPECT_NE(arena.allocate(Arena::kPageBytes), nullptr);
}

}  // namespace
}  // namespace lowtide::arena_test

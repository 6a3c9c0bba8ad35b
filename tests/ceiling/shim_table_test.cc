#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

#include "ceiling/shim/table.h"

namespace lowtide::ceiling::shim_table_test {
namespace {

Entry entry(std::uintptr_t start, std::uintptr_t end, std::uint64_t inode = 1,
            Kind kind = Kind::shared) {
  Entry made;
  made.range = {start, end};
  made.inode = inode;
  made.kind = kind;
  return made;
}

TEST(ShimTable, SplitsAnEntryWhoseMiddleIsUnmapped) {
  const auto table = std::make_unique<Table>();
  ASSERT_TRUE(table->insert(entry(10, 20)));
  table->remove({13, 15});
  ASSERT_EQ(table->size(), 2U);
  EXPECT_EQ((*table)[0].range.end, 13U);
  EXPECT_EQ((*table)[1].range.start, 15U);
  EXPECT_EQ(table->at(12)->inode, 1U);
  EXPECT_EQ(table->at(13), nullptr);
  EXPECT_EQ(table->at(15)->inode, 1U);
  EXPECT_EQ(table->at(20), nullptr);
}

TEST(ShimTable, ANewMapTakesThePlaceOfWhatItCovers) {
  const auto table = std::make_unique<Table>();
  ASSERT_TRUE(table->insert(entry(10, 20, 1)));
  ASSERT_TRUE(table->insert(entry(20, 30, 2)));
  ASSERT_TRUE(table->insert(entry(15, 25, 3)));
  EXPECT_EQ(table->at(14)->inode, 1U);
  EXPECT_EQ(table->at(15)->inode, 3U);
  EXPECT_EQ(table->at(24)->inode, 3U);
  EXPECT_EQ(table->at(25)->inode, 2U);
}

TEST(ShimTable, WritableOnceIsWritableEver) {
  const auto table = std::make_unique<Table>();
  ASSERT_TRUE(table->insert(entry(10, 20, 1, Kind::private_clean)));
  ASSERT_TRUE(table->insert(entry(20, 30, 2, Kind::private_clean)));
  ASSERT_TRUE(table->insert(entry(30, 40, 3, Kind::shared)));
  table->make_writable({15, 20});
  EXPECT_EQ(table->at(10)->kind, Kind::private_dirty);
  EXPECT_EQ(table->at(20)->kind, Kind::private_clean);
  table->make_writable({0, 100});
  EXPECT_EQ(table->at(20)->kind, Kind::private_dirty);
  EXPECT_EQ(table->at(30)->kind, Kind::shared);
}

TEST(ShimTable, AFullTableLeavesOutAndCounts) {
  const auto table = std::make_unique<Table>();
  for (std::uintptr_t i = 0; i < Table::kEntries; ++i) {
    ASSERT_TRUE(table->insert(entry(i * 10, i * 10 + 5)));
  }
  EXPECT_FALSE(table->insert(entry(1 << 20, (1 << 20) + 1)));
  EXPECT_EQ(table->lost(), 1U);
  table->remove({2, 3});  // a split has no room: the tail is given up, never the hole kept
  EXPECT_EQ(table->at(1)->inode, 1U);
  EXPECT_EQ(table->at(2), nullptr);
  EXPECT_EQ(table->at(4), nullptr);
  EXPECT_EQ(table->lost(), 2U);
}

TEST(ShimTable, WhatWasSetAsideComesBackAsItWas) {
  const auto table = std::make_unique<Table>();
  ASSERT_TRUE(table->insert(entry(10, 20, 1, Kind::shared)));
  ASSERT_TRUE(table->insert(entry(20, 30, 2, Kind::private_dirty)));
  ASSERT_TRUE(table->insert(entry(40, 50, 3)));
  EXPECT_FALSE(table->set_aside({30, 40}));
  EXPECT_FALSE(table->set_aside({50, 90}));
  ASSERT_TRUE(table->set_aside({15, 35}));
  EXPECT_FALSE(table->at(14)->aside);
  EXPECT_TRUE(table->at(15)->aside);
  EXPECT_TRUE(table->at(29)->aside);
  EXPECT_FALSE(table->at(40)->aside);
  table->put_back({15, 35});
  const struct {
    std::uintptr_t address;
    std::uint64_t inode;
    Kind kind;
  } before[] = {{10, 1, Kind::shared},
                {19, 1, Kind::shared},
                {20, 2, Kind::private_dirty},
                {29, 2, Kind::private_dirty},
                {40, 3, Kind::shared}};
  for (const auto& one : before) {
    ASSERT_NE(table->at(one.address), nullptr) << one.address;
    EXPECT_EQ(table->at(one.address)->inode, one.inode);
    EXPECT_EQ(table->at(one.address)->kind, one.kind);
    EXPECT_FALSE(table->at(one.address)->aside);
  }
  EXPECT_EQ(table->at(30), nullptr);
  EXPECT_EQ(table->at(39), nullptr);
}

TEST(ShimTable, WhatWasSetAsideIsDroppedButNotWhatCameInItsPlace) {
  const auto table = std::make_unique<Table>();
  ASSERT_TRUE(table->insert(entry(10, 50, 1)));
  ASSERT_TRUE(table->set_aside({20, 40}));
  ASSERT_TRUE(table->insert(entry(25, 30, 2)));  // another thread was given the address
  table->drop_aside({20, 40});
  EXPECT_EQ(table->at(19)->inode, 1U);
  EXPECT_EQ(table->at(20), nullptr);
  EXPECT_EQ(table->at(25)->inode, 2U);
  EXPECT_EQ(table->at(30), nullptr);
  EXPECT_EQ(table->at(40)->inode, 1U);
}

TEST(ShimTable, AFullTableSetsAsideMoreThanItWasAskedTo) {
  const auto table = std::make_unique<Table>();
  for (std::uintptr_t i = 0; i < Table::kEntries; ++i) {
    ASSERT_TRUE(table->insert(entry(i * 10, i * 10 + 5)));
  }
  ASSERT_TRUE(table->set_aside({2, 3}));
  EXPECT_TRUE(table->at(0)->aside);
  table->put_back({2, 3});
  EXPECT_FALSE(table->at(0)->aside);
  ASSERT_TRUE(table->set_aside({2, 3}));
  table->drop_aside({2, 3});
  EXPECT_EQ(table->at(2), nullptr);
  EXPECT_EQ(table->lost(), 1U);
}

// The slow twin: an inode for every single address.
TEST(ShimTable, KnowsWhatAMapOfSinglePagesKnows) {
  const auto table = std::make_unique<Table>();
  std::map<std::uintptr_t, std::uint64_t> pages;
  std::mt19937 random(7);
  constexpr std::uintptr_t kPages = 300;
  for (std::uint64_t step = 1; step <= 20000; ++step) {
    const std::uintptr_t start = random() % kPages;
    const std::uintptr_t end = start + 1 + random() % 40;
    if (random() % 2 == 0) {
      ASSERT_TRUE(table->insert(entry(start, end, step)));
      for (std::uintptr_t page = start; page < end; ++page) pages[page] = step;
    } else {
      table->remove({start, end});
      pages.erase(pages.lower_bound(start), pages.lower_bound(end));
    }
    for (std::uintptr_t page = start < 2 ? 0 : start - 2; page < end + 2; ++page) {
      const Entry* const found = table->at(page);
      const auto expected = pages.find(page);
      ASSERT_EQ(found != nullptr, expected != pages.end()) << step << ' ' << page;
      if (found != nullptr) {
        ASSERT_EQ(found->inode, expected->second);
      }
    }
  }
}

}  // namespace
}  // namespace lowtide::ceiling::shim_table_test

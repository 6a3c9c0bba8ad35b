#include "core/shards.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lowtide::shards_test {
namespace {

TEST(Shards, GiveBackWhatWasAdded) {
  const std::vector<Shard> added{{"/a/b/one.npy", 1, 11},
                                 {"/a/b/two.npy", 2, 22},
                                 {"/a/c/one.npy", 3, 33},
                                 {"relative", 4, 44},
                                 {"/", 5, 55},
                                 {"/a/b/\xff\n", 6, 66}};
  const Shards shards(added);
  ASSERT_EQ(shards.size(), added.size());
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < added.size(); ++i) {
    EXPECT_EQ(shards[i].path, added[i].path);
    EXPECT_EQ(shards.size_bytes(i), added[i].size_bytes);
    EXPECT_EQ(shards.version(i), added[i].version);
    paths.push_back(added[i].path);
  }
  EXPECT_EQ(shards.paths(), paths);
}

TEST(Shards, HoldALittleMoreThanTheNames) {
  Shards shards;
  const std::string folder = "/" + std::string(200, 'f') + "/";
  constexpr std::uint64_t kCount = 100'000;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    shards.add({folder + "part-" + std::to_string(100'000 + i) + ".npy", i, i});
  }
  EXPECT_LE(shards.held_bytes(), kCount * 2 * (24 + 15));
  EXPECT_EQ(shards.path(77'777), folder + "part-177777.npy");
}

}  // namespace
}  // namespace lowtide::shards_test

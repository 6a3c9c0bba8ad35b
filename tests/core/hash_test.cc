#include "core/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>
#include <vector>

namespace lowtide::hash_test {
namespace {

std::uint64_t of_text(const std::string& text, std::uint64_t hash = 0) {
  return hash_with(hash, std::as_bytes(std::span(text)));
}

TEST(Hash, KeepsItsValuesOverVersions) {
  EXPECT_EQ(mix64(0), 0U);
  EXPECT_EQ(mix64(kGolden64), 0xE220A8397B1DCDAFU);  // the first output of splitmix64(0)
  EXPECT_EQ(mix64(2 * kGolden64), 0x6E789E6AA1B965F4U);
  EXPECT_EQ(hash_with(0, std::uint64_t{0}), 0xE220A8397B1DCDAFU);
}

TEST(Hash, MovesAboutHalfOfTheBitsForEveryBit) {
  for (const std::uint64_t from : {0UL, 1UL, 12345UL, ~0UL, 0xFF00FF00FF00FF00UL}) {
    for (int bit = 0; bit < 64; ++bit) {
      const int moved = std::popcount(mix64(from) ^ mix64(from ^ (std::uint64_t{1} << bit)));
      EXPECT_GT(moved, 10) << from << " bit " << bit;
      EXPECT_LT(moved, 54) << from << " bit " << bit;
    }
  }
}

TEST(Hash, TellsBytesTheirOrderAndTheirNumberApart) {
  std::set<std::uint64_t> seen;
  for (std::size_t length = 0; length < 40; ++length) {
    EXPECT_TRUE(seen.insert(of_text(std::string(length, '\0'))).second) << length << " zeros";
  }
  const std::string text = "where the documents of a token stream start";
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_TRUE(seen.insert(of_text(other)).second) << "byte " << i;
  }
  EXPECT_NE(of_text("b", of_text("a")), of_text("a", of_text("b")));
  EXPECT_NE(of_text("ab"), of_text("b", of_text("a")));
}

TEST(Hash, DependsOnBytesAndNotOnWhereTheyLie) {
  const std::string room = "....the same bytes....";
  const std::string same = "the same bytes";
  for (std::size_t shift = 0; shift < 4; ++shift) {
    const std::string moved = std::string(shift, ' ') + room;
    const auto bytes = std::as_bytes(std::span(moved)).subspan(4 + shift, same.size());
    EXPECT_EQ(hash_with(7, bytes), of_text(same, 7));
  }
}

TEST(Hash, DependsOnTheOrderOfValues) {
  EXPECT_NE(hash_with(hash_with(0, std::uint64_t{1}), std::uint64_t{2}),
            hash_with(hash_with(0, std::uint64_t{2}), std::uint64_t{1}));
}

}  // namespace
}  // namespace lowtide::hash_test

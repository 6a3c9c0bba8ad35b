#include "core/crc32.h"

#include <gtest/gtest.h>

#include <string>

namespace lowtide::crc32_test {
namespace {

std::uint32_t sum_of(const std::string& text) {
  return crc32(0, std::as_bytes(std::span(text)));
}

TEST(Crc32, IsThatOfZlib) {
  EXPECT_EQ(sum_of(""), 0u);
  EXPECT_EQ(sum_of("123456789"), 0xcbf43926u);
  EXPECT_EQ(sum_of("The quick brown fox jumps over the lazy dog"), 0x414fa339u);
  EXPECT_EQ(sum_of(std::string(32, '\0')), 0x190a55adu);
  EXPECT_EQ(sum_of(std::string(32, '\xff')), 0xff6cab0bu);
}

TEST(Crc32, DoesNotDependOnHowTheBytesAreCut) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  const auto bytes = std::as_bytes(std::span(text));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32(crc32(0, bytes.first(cut)), bytes.subspan(cut)), sum_of(text)) << cut;
  }
}

}  // namespace
}  // namespace lowtide::crc32_test

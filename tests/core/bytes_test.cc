#include "lowtide/bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "support/thrown.h"

namespace lowtide::bytes_test {
namespace {

std::string refusal_of(const std::string& text) {
  return thrown<std::invalid_argument>([&] { (void)parse_bytes(text); });
}

TEST(ParseBytes, ReadsPowersOfTwoAndOfTen) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("1"), 1u);
  EXPECT_EQ(parse_bytes("12B"), 12u);
  EXPECT_EQ(parse_bytes("64KiB"), 65536u);
  EXPECT_EQ(parse_bytes("256 MiB"), 268435456u);
  EXPECT_EQ(parse_bytes("2TiB"), 2199023255552u);
  EXPECT_EQ(parse_bytes("1KB"), 1000u);
  EXPECT_EQ(parse_bytes("500MB"), 500000000u);
  EXPECT_EQ(parse_bytes("3GB"), 3000000000u);
  EXPECT_EQ(parse_bytes("1TB"), 1000000000000u);
}

TEST(ParseBytes, IgnoresCase) {
  EXPECT_EQ(parse_bytes("64kib"), 65536u);
  EXPECT_EQ(parse_bytes("1Gb"), 1000000000u);
}

TEST(ParseBytes, ReadsFractionsExactlyAndRoundsDown) {
  EXPECT_EQ(parse_bytes("1.5GiB"), 1610612736u);
  EXPECT_EQ(parse_bytes("0.1KB"), 100u);
  EXPECT_EQ(parse_bytes("0.3MB"), 300000u);
  EXPECT_EQ(parse_bytes("1.9"), 1u);
  EXPECT_EQ(parse_bytes("0.0009765625MiB"), 1024u);
  EXPECT_EQ(parse_bytes("0.00097656249999999999999999999999MiB"), 1023u);
}

TEST(ParseBytes, ReadsTheLargestNumberAndRefusesTheNext) {
  EXPECT_EQ(parse_bytes("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* text : {"18446744073709551616", "16777216TiB", "99999999999999999999999",
                           "18446744073709551615KiB"}) {
    EXPECT_NE(refusal_of(text).find("it needs more than 64 bits"), std::string::npos) << text;
  }
}

TEST(ParseBytes, RefusesWhatIsNoSize) {
  for (const char* text :
       {"",      " ",      "lots", "-1",     "+1",    "nan",   "inf",     "1e3",     "1 XB",
        "0",     "0.5",    "0KiB", "1  KiB", " 1KiB", "1KiB ", "1 ",      "1.",      ".5GiB",
        "1.5.5", "1,5GiB", "0x10", "KiB",    "1KiBs", "1Q",    "64KiB\n", "\xd9\xa1"}) {
    EXPECT_NE(refusal_of(text).find("is not a size in bytes"), std::string::npos) << text;
  }
  EXPECT_THROW((void)parse_bytes(std::string_view("1\0", 2)), std::invalid_argument);
}

TEST(ParseBytes, ReadsZeroWhereThatIsAllowed) {
  for (const char* text : {"0", "0KiB", "0 B", "0.5"}) EXPECT_EQ(parse_bytes(text, 0), 0U) << text;
  EXPECT_THROW((void)parse_bytes("-1", 0), std::invalid_argument);
  EXPECT_NE(refusal_of("0").find("it must be at least 1 B"), std::string::npos);
}

TEST(ParseBytes, TellsWhatToWriteInstead) {
  EXPECT_EQ(refusal_of("lots"),
            "\"lots\" is not a size in bytes: it does not start with a digit; write e.g. "
            "\"64KiB\", \"1.5GiB\", \"500MB\" or \"4096\"");
  EXPECT_EQ(refusal_of("1 XB"),
            "\"1 XB\" is not a size in bytes: unknown unit; write e.g. \"64KiB\", \"1.5GiB\", "
            "\"500MB\" or \"4096\"");
}

TEST(ParseBytes, AsksWhatALoneLetterMeans) {
  EXPECT_EQ(refusal_of("512M"), "512M: do you mean 512MiB or 512MB?");
  EXPECT_EQ(refusal_of("64m"), "64m: do you mean 64MiB or 64MB?");
  EXPECT_EQ(refusal_of("1.5 G"), "1.5 G: do you mean 1.5GiB or 1.5GB?");
  EXPECT_EQ(refusal_of("1k"), "1k: do you mean 1KiB or 1KB?");
  EXPECT_EQ(refusal_of("2T"), "2T: do you mean 2TiB or 2TB?");
  EXPECT_EQ(refusal_of("512Mi"), "512Mi: do you mean 512MiB?");
  for (const char* text : {"1Q", "1Mx", "1i", "1MiBB"}) {
    EXPECT_NE(refusal_of(text).find("unknown unit"), std::string::npos) << text;
  }
}

TEST(ParseBytes, ShowsOnlyTheStartOfALongText) {
  EXPECT_LT(refusal_of(std::string(100000, 'x')).size(), 200u);
  EXPECT_LT(refusal_of(std::string(100000, '1') + "M").size(), 200u);
}

TEST(FormatBytes, SpellsExactValuesShortly) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(10), "10 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(65536), "64 KiB");
  EXPECT_EQ(format_bytes(1ULL << 40), "1 TiB");
}

TEST(FormatBytes, RoundsOthersToThreeDigits) {
  EXPECT_EQ(format_bytes(1500), "1.46 KiB");
  EXPECT_EQ(format_bytes(66184), "64.6 KiB");
  EXPECT_EQ(format_bytes(1025 * 1024), "1.00 MiB");
  EXPECT_EQ(format_bytes(1034), "1.01 KiB");
  EXPECT_EQ(format_bytes(512 * 1024 + 100), "512 KiB");
}

TEST(FormatBytes, GoesToTheNextUnitInsteadOf1024) {
  EXPECT_EQ(format_bytes((1 << 20) - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16777216 TiB");
}

TEST(FormatBytes, IsReadBackByParseBytesWhereExact) {
  for (const std::uint64_t bytes : {1ULL, 1536ULL, 65536ULL, 1ULL << 30, 3ULL << 39}) {
    EXPECT_EQ(parse_bytes(format_bytes(bytes)), bytes);
  }
}

TEST(FormatFixed, HasAsManyDecimalsAsAskedFor) {
  EXPECT_EQ(format_fixed(3.14159, 2), "3.14");
  EXPECT_EQ(format_fixed(2.999, 1), "3.0");
  EXPECT_EQ(format_fixed(-0.5, 0), "-0");
  EXPECT_EQ(format_fixed(1e300, 0).size(), 301u);
}

}  // namespace
}  // namespace lowtide::bytes_test

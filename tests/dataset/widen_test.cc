#include "dataset/widen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lowtide::widen_test {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::array kTypes{TokenType::u8,  TokenType::i8,  TokenType::u16, TokenType::i16,
                            TokenType::u32, TokenType::i32, TokenType::u64, TokenType::i64};
constexpr std::array kKernels{WidenKernel::kBest, WidenKernel::kPortable};
constexpr std::byte kUntouched{0xA5};

// A token of any type: whether below 0, and its 64 bits in two's complement.
struct Value {
  bool negative;
  std::uint64_t bits;
};

bool is_signed(TokenType type) {
  return token_type_name(type).starts_with("int");
}

std::uint64_t highest(TokenType type) {
  const std::size_t bits = token_bytes(type) * 8 - (is_signed(type) ? 1 : 0);
  return ~std::uint64_t{0} >> (64 - bits);
}

Value value_at(TokenType type, const std::byte* from, std::size_t i) {
  const std::size_t bytes = token_bytes(type);
  std::uint64_t bits = 0;
  std::memcpy(&bits, from + i * bytes, bytes);  // little-endian
  const bool negative = is_signed(type) && bits > highest(type);
  if (negative && bytes < 8) bits |= ~std::uint64_t{0} << (bytes * 8);
  return {negative, bits};
}

bool fits(Value value, TokenType to) {
  if (!value.negative) return value.bits <= highest(to);
  return is_signed(to) && ~value.bits <= highest(to);
}

void put(Value value, TokenType to, std::byte* at, std::size_t i) {
  std::memcpy(at + i * token_bytes(to), &value.bits, token_bytes(to));
}

// Tokens of every size that fit both types.
Bytes fitting_tokens(TokenType type, TokenType to, std::size_t count, std::mt19937_64& random) {
  Bytes tokens(count * token_bytes(type));
  const std::uint64_t top = std::min(highest(type), highest(to));
  for (std::size_t i = 0; i < count; ++i) {
    Value value{false, (random() >> (random() % 64)) & top};
    if (i % 7 == 3) value.bits = top;
    if (is_signed(type) && is_signed(to) && random() % 2 == 0) value = {true, ~value.bits};
    put(value, type, tokens.data(), i);
  }
  return tokens;
}

// Aligned for every type, filled with a pattern, with room behind to see writes beyond the end.
struct Target {
  std::vector<std::uint64_t> words;
  std::size_t bytes;

  Target(TokenType to, std::size_t count) : words(count + 8), bytes(count * token_bytes(to)) {
    std::fill_n(data(), words.size() * 8, kUntouched);
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(words.data()); }
  Bytes written() { return {data(), data() + bytes}; }
  bool clean_beyond() {
    return std::all_of(data() + bytes, data() + words.size() * 8,
                       [](std::byte b) { return b == kUntouched; });
  }
};

// The obvious twin: token by token, one byte width at a time.
Bytes naive(TokenType type, const std::byte* from, std::size_t first, std::size_t count,
            TokenType to) {
  Bytes out(count * token_bytes(to));
  for (std::size_t i = 0; i < count; ++i) put(value_at(type, from, first + i), to, out.data(), i);
  return out;
}

template <typename Work>
void for_all_combinations(const Work& work) {
  for (const TokenType type : kTypes) {
    for (const TokenType to : kTypes) {
      SCOPED_TRACE(std::string(token_type_name(type)) + " to " + std::string(token_type_name(to)));
      work(type, to);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

void expect_like_twin(TokenType type, const std::byte* from, std::size_t count, TokenType to) {
  const Bytes early = naive(type, from, 0, count - 1, to);
  const Bytes late = naive(type, from, 1, count - 1, to);
  for (const WidenKernel kernel : kKernels) {
    Target x(to, count - 1);
    Target y(to, count - 1);
    ASSERT_TRUE(widen(type, from, count, to, x.data(), y.data(), kernel));
    ASSERT_EQ(x.written(), early);
    ASSERT_EQ(y.written(), late);
    ASSERT_TRUE(x.clean_beyond() && y.clean_beyond());
  }
  ASSERT_EQ(first_misfit(type, from, count, to), count);
}

TEST(Widen, EqualsItsTwinForEveryTypeLengthAndAlignment) {
  std::mt19937_64 random(1);
  std::vector<std::size_t> lengths{1025};
  for (std::size_t count = 1; count <= 67; ++count) lengths.push_back(count);
  for_all_combinations([&](TokenType type, TokenType to) {
    for (const std::size_t count : lengths) {
      SCOPED_TRACE(count);
      const Bytes tokens = fitting_tokens(type, to, count, random);
      for (std::size_t offset = 0; offset < 8; ++offset) {
        // Exactly as large as needed, so that sanitizers see a read beyond.
        Bytes moved(offset + tokens.size());
        std::copy(tokens.begin(), tokens.end(),
                  moved.begin() + static_cast<std::ptrdiff_t>(offset));
        expect_like_twin(type, moved.data() + offset, count, to);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

// The values around the ends of every type: of these, those that `type` holds.
std::vector<Value> edges(TokenType type) {
  std::vector<Value> values;
  for (const TokenType other : kTypes) {
    for (const std::uint64_t past : {0U, 1U, 2U}) {
      const std::uint64_t bits = highest(other) - 1 + past;
      if (bits != 0 && bits <= highest(type)) values.push_back({false, bits});
      if (is_signed(type) && bits <= highest(type)) values.push_back({true, ~bits});
    }
  }
  values.push_back({false, 0});
  if (is_signed(type)) values.push_back({true, ~std::uint64_t{0}});
  return values;
}

TEST(Widen, FindsEveryMisfitAtEveryPosition) {
  constexpr std::size_t kCount = 41;  // one block, and one that begins inside it
  std::mt19937_64 random(2);
  std::size_t misfits = 0;
  for_all_combinations([&](TokenType type, TokenType to) {
    const std::size_t bytes = token_bytes(type);
    Bytes tokens = fitting_tokens(type, to, kCount, random);
    for (const Value value : edges(type)) {
      SCOPED_TRACE(testing::Message() << (value.negative ? "negative " : "") << value.bits);
      const bool good = fits(value, to);
      for (std::size_t i = 0; i < kCount; ++i) {
        const Bytes before(tokens);
        put(value, type, tokens.data(), i);
        ASSERT_EQ(first_misfit(type, tokens.data(), kCount, to), good ? kCount : i);
        for (const WidenKernel kernel : kKernels) {
          Target x(to, kCount - 1);
          Target y(to, kCount - 1);
          ASSERT_EQ(widen(type, tokens.data(), kCount, to, x.data(), y.data(), kernel), good) << i;
        }
        std::memcpy(tokens.data() + i * bytes, before.data() + i * bytes, bytes);
        misfits += good ? 0 : 1;
      }
    }
  });
  EXPECT_GT(misfits, 10'000U);
}

TEST(Widen, FindsTheFirstOfManyMisfits) {
  const std::vector<std::uint32_t> tokens{1, 65535, 65536, 2, 70000};
  const auto* from = reinterpret_cast<const std::byte*>(tokens.data());
  EXPECT_EQ(first_misfit(TokenType::u32, from, tokens.size(), TokenType::u16), 2U);
  EXPECT_EQ(first_misfit(TokenType::u32, from, 2, TokenType::u16), 2U);
  EXPECT_EQ(first_misfit(TokenType::u32, from, tokens.size(), TokenType::i16), 1U);
  EXPECT_EQ(first_misfit(TokenType::u32, from, tokens.size(), TokenType::i32), 5U);
  EXPECT_EQ(first_misfit(TokenType::u32, from, 0, TokenType::u8), 0U);
}

// An or of all tokens has bits that no token has: that alone must not refuse them.
TEST(Widen, TakesTokensWhoseBitsTogetherFillTheType) {
  const std::vector<std::int32_t> tokens{-32768, 32767, 0x5555, 0x2AAA, -1, 0};
  const auto* from = reinterpret_cast<const std::byte*>(tokens.data());
  const std::size_t count = tokens.size();
  Target x(TokenType::i16, count - 1);
  Target y(TokenType::i16, count - 1);
  EXPECT_TRUE(widen(TokenType::i32, from, count, TokenType::i16, x.data(), y.data()));
  EXPECT_EQ(x.written(), naive(TokenType::i32, from, 0, count - 1, TokenType::i16));
  EXPECT_EQ(y.written(), naive(TokenType::i32, from, 1, count - 1, TokenType::i16));
}

TEST(Widen, WritesNothingForASingleTokenWithXAndY) {
  const std::uint16_t token = 300;
  const auto* from = reinterpret_cast<const std::byte*>(&token);
  Target x(TokenType::i64, 0);
  Target y(TokenType::i64, 0);
  EXPECT_TRUE(widen(TokenType::u16, from, 1, TokenType::i64, x.data(), y.data()));
  EXPECT_TRUE(x.clean_beyond() && y.clean_beyond());
  EXPECT_FALSE(widen(TokenType::u16, from, 1, TokenType::u8, x.data(), y.data()));
}

TEST(TokenText, IsTheDecimalNumber) {
  const auto text = []<typename T>(TokenType type, T value) {
    const std::array<T, 2> tokens{0, value};
    return token_text(type, reinterpret_cast<const std::byte*>(tokens.data()), 1);
  };
  EXPECT_EQ(text(TokenType::u8, std::uint8_t{65}), "65");
  EXPECT_EQ(text(TokenType::i8, std::int8_t{-128}), "-128");
  EXPECT_EQ(text(TokenType::u16, std::uint16_t{65535}), "65535");
  EXPECT_EQ(text(TokenType::i16, std::int16_t{-1}), "-1");
  EXPECT_EQ(text(TokenType::u32, std::uint32_t{70000}), "70000");
  EXPECT_EQ(text(TokenType::i32, std::int32_t{-70000}), "-70000");
  EXPECT_EQ(text(TokenType::u64, ~std::uint64_t{0}), "18446744073709551615");
  EXPECT_EQ(text(TokenType::i64, std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
  const std::array<std::byte, 5> unaligned{std::byte{9}, std::byte{0}, std::byte{0}, std::byte{1},
                                           std::byte{2}};
  EXPECT_EQ(token_text(TokenType::u16, unaligned.data() + 1, 1), "513");
}

TEST(TokenTypes, AreTheLittleEndianIntegers) {
  for (const TokenType type : kTypes) {
    const DType dtype = DType::parse(token_type_name(type));
    EXPECT_EQ(token_type(dtype), type);
    EXPECT_EQ(token_bytes(type), dtype.itemsize_bytes);
  }
  EXPECT_EQ(token_type(DType::parse("<u2")), TokenType::u16);
  EXPECT_EQ(token_type(DType::parse("|i1")), TokenType::i8);
  EXPECT_EQ(token_type(DType::parse(">u1")), TokenType::u8);
  for (const std::string text : {">u2", ">i8", "<f4", "|b1", "<M8[ns]", "|S2", "|V4", "<U1"}) {
    EXPECT_EQ(token_type(DType::parse(text)), std::nullopt) << text;
  }
  DType pair;
  pair.itemsize_bytes = 4;
  pair.subshape = {2};
  pair.element = {DType::parse("<u2")};
  EXPECT_EQ(token_type(pair), std::nullopt);
}

}  // namespace
}  // namespace lowtide::widen_test

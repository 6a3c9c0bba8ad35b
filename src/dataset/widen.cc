#include "dataset/widen.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/cpu.h"

namespace lowtide {
namespace {

static_assert(std::endian::native == std::endian::little, "tokens are read as they are stored");

using Tokens = TokenCppTypes;
constexpr std::size_t kTypes = kTokenTypes;

template <typename T>
[[gnu::always_inline]] inline T load(const std::byte* from) noexcept {
  T token;
  std::memcpy(&token, from, sizeof(T));
  return token;
}

// Shows without a second pass whether all tokens fit: their bits, or-ed together. If both types are
// signed, a negative token counts as its complement, because -1 - n fits exactly if n does.
template <typename From, typename To>
struct Fit {
  using Bits = std::make_unsigned_t<From>;

  static constexpr bool kNeeded =
      std::cmp_less(std::numeric_limits<To>::max(), std::numeric_limits<From>::max()) ||
      std::cmp_greater(std::numeric_limits<To>::min(), std::numeric_limits<From>::min());
  static constexpr auto kAllowed =
      static_cast<Bits>(std::min(static_cast<std::uint64_t>(std::numeric_limits<To>::max()),
                                 static_cast<std::uint64_t>(std::numeric_limits<From>::max())));

  [[gnu::always_inline]] static inline Bits bits(From token) noexcept {
    if constexpr (!kNeeded) {
      return 0;
    } else if constexpr (std::is_signed_v<From> && std::is_signed_v<To>) {
      return static_cast<Bits>(token < 0 ? ~token : token);
    } else {
      return static_cast<Bits>(token);
    }
  }

  static bool all(Bits seen) noexcept { return (seen & static_cast<Bits>(~kAllowed)) == 0; }
};

template <typename From, typename To>
struct Widen {
  using Bits = typename Fit<From, To>::Bits;

  // Two AVX2 vectors of the narrowest token. With a constant count, compilers vectorise the loop
  // without a version for every remainder.
  static constexpr std::size_t kLanes = 32;

  [[gnu::always_inline]] static inline Bits one(const std::byte* from, std::byte* into) noexcept {
    const From token = load<From>(from);
    const To wide = static_cast<To>(token);
    std::memcpy(into, &wide, sizeof(To));
    return Fit<From, To>::bits(token);
  }

  [[gnu::always_inline]] static inline Bits run(const std::byte* __restrict from, std::size_t count,
                                                std::byte* __restrict x,
                                                std::byte* __restrict y) noexcept {
    Bits seen = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const From token = load<From>(from + i * sizeof(From));
      const To wide = static_cast<To>(token);
      seen = static_cast<Bits>(seen | Fit<From, To>::bits(token));
      std::memcpy(x + i * sizeof(To), &wide, sizeof(To));
      std::memcpy(y + i * sizeof(To), &wide, sizeof(To));
    }
    return seen;
  }

  // Not inlined: at -O3 these short loops would be most of the code.
  [[gnu::noinline]] static Bits few(const std::byte* from, std::size_t count, std::byte* x,
                                    std::byte* y) noexcept {
    return run(from, count, x, y);
  }

  // The last block may begin inside the one before: it is cheaper to write some tokens twice than
  // to widen up to 31 of them one by one.
  [[gnu::always_inline]] static inline Bits blocks(const std::byte* from, std::size_t count,
                                                   std::byte* x, std::byte* y) noexcept {
    if (count < kLanes) return few(from, count, x, y);
    Bits seen = 0;
    for (std::size_t done = 0; done < count; done += kLanes) {
      const std::size_t first = std::min(done, count - kLanes);
      const std::size_t at = first * sizeof(To);
      seen = static_cast<Bits>(seen | run(from + first * sizeof(From), kLanes, x + at, y + at));
    }
    return seen;
  }

  // Tokens 1 .. count - 2 go to both; the first only to x and the last only to y.
  [[gnu::always_inline]] static inline bool both(const std::byte* from, std::size_t count,
                                                 std::byte* x, std::byte* y) noexcept {
    const std::byte* const last = from + (count - 1) * sizeof(From);
    if (count == 1) return Fit<From, To>::all(Fit<From, To>::bits(load<From>(from)));
    Bits seen = one(from, x);
    seen = static_cast<Bits>(seen | blocks(from + sizeof(From), count - 2, x + sizeof(To), y));
    seen = static_cast<Bits>(seen | one(last, y + (count - 2) * sizeof(To)));
    return Fit<From, To>::all(seen);
  }

  static bool portable(const std::byte* from, std::size_t count, std::byte* x,
                       std::byte* y) noexcept {
    return both(from, count, x, y);
  }

#if defined(__x86_64__)
  // Chosen by a plain test at run time, because target_clones needs ifunc, which sanitizers and
  // some C libraries do not support well.
  [[gnu::target("avx2")]] static bool widest(const std::byte* from, std::size_t count, std::byte* x,
                                             std::byte* y) noexcept {
    return both(from, count, x, y);
  }
#else
  static constexpr auto widest = portable;
#endif
};

struct Kernels {
  using Kernel = bool (*)(const std::byte*, std::size_t, std::byte*, std::byte*) noexcept;
  Kernel portable;
  Kernel widest;
};

template <std::size_t... kPair>
constexpr std::array<Kernels, sizeof...(kPair)> all_kernels(std::index_sequence<kPair...> /*all*/) {
  return {{{Widen<std::tuple_element_t<kPair / kTypes, Tokens>,
                  std::tuple_element_t<kPair % kTypes, Tokens>>::portable,
            Widen<std::tuple_element_t<kPair / kTypes, Tokens>,
                  std::tuple_element_t<kPair % kTypes, Tokens>>::widest}...}};
}

constexpr auto kKernels = all_kernels(std::make_index_sequence<kTypes * kTypes>());

// Calls work.operator()<T>() with the C++ type of `type`.
template <typename Work>
auto with_type(TokenType type, const Work& work) {
  switch (type) {
    case TokenType::u8:
      return work.template operator()<std::uint8_t>();
    case TokenType::i8:
      return work.template operator()<std::int8_t>();
    case TokenType::u16:
      return work.template operator()<std::uint16_t>();
    case TokenType::i16:
      return work.template operator()<std::int16_t>();
    case TokenType::u32:
      return work.template operator()<std::uint32_t>();
    case TokenType::i32:
      return work.template operator()<std::int32_t>();
    case TokenType::u64:
      return work.template operator()<std::uint64_t>();
    case TokenType::i64:
      break;
  }
  return work.template operator()<std::int64_t>();
}

}  // namespace

bool widen(TokenType type, const std::byte* from, std::size_t count, TokenType to, std::byte* x,
           std::byte* y, WidenKernel kernel) {
  assert(count >= 1);
  const auto& [portable, widest] =
      kKernels[static_cast<std::size_t>(type) * kTypes + static_cast<std::size_t>(to)];
  const auto run = kernel == WidenKernel::kBest && has_avx2() ? widest : portable;
  return run(from, count, x, y);
}

std::size_t first_misfit(TokenType type, const std::byte* from, std::size_t count, TokenType to) {
  const TokenTypeRow& limits = token_type_row(to);
  return with_type(type, [&]<typename From>() {
    for (std::size_t i = 0; i < count; ++i) {
      const From token = load<From>(from + i * sizeof(From));
      if (std::cmp_less(token, limits.lowest) || std::cmp_greater(token, limits.highest)) return i;
    }
    return count;
  });
}

std::string token_text(TokenType type, const std::byte* from, std::size_t i) {
  return with_type(
      type, [&]<typename From>() { return std::to_string(load<From>(from + i * sizeof(From))); });
}

}  // namespace lowtide

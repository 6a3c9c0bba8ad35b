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

// In the order of TokenType.
using Tokens = std::tuple<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t,
                          std::int32_t, std::uint64_t, std::int64_t>;
constexpr std::size_t kTypes = std::tuple_size_v<Tokens>;

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;
  std::int64_t lowest;
  std::uint64_t highest;
};

template <typename T>
constexpr TypeFacts facts_of(std::string_view name) {
  return {name, sizeof(T), static_cast<std::int64_t>(std::numeric_limits<T>::min()),
          static_cast<std::uint64_t>(std::numeric_limits<T>::max())};
}

constexpr std::array<TypeFacts, kTypes> kFacts{{
    facts_of<std::uint8_t>("uint8"),
    facts_of<std::int8_t>("int8"),
    facts_of<std::uint16_t>("uint16"),
    facts_of<std::int16_t>("int16"),
    facts_of<std::uint32_t>("uint32"),
    facts_of<std::int32_t>("int32"),
    facts_of<std::uint64_t>("uint64"),
    facts_of<std::int64_t>("int64"),
}};

constexpr const TypeFacts& facts(TokenType type) {
  return kFacts[static_cast<std::size_t>(type)];
}

template <typename T>
[[gnu::always_inline]] inline T load(const std::byte* from) noexcept {
  T token;
  std::memcpy(&token, from, sizeof(T));
  return token;
}

// What tells whether tokens fit without a second pass: the bits of all of them, or-ed together.
// Where both types are signed a negative token counts as its complement, for -1 - n fits exactly
// where n does.
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

  // Two vectors of the narrowest token that AVX2 holds. A constant count is what lets compilers
  // vectorise the loop without a version for every remainder.
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

  // The last block may begin inside the one before: writing some tokens twice costs less than
  // widening up to 31 of them one by one.
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
  // Chosen by a plain test at run time: target_clones needs ifunc, which sanitizers and some C
  // libraries do not take well.
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

std::optional<TokenType> token_type(const DType& dtype) {
  if (dtype.kind != 'u' && dtype.kind != 'i') return std::nullopt;
  if (dtype.byte_order == '>' && dtype.itemsize_bytes > 1) return std::nullopt;
  for (std::size_t i = 0; i < kTypes; ++i) {
    const bool is_signed = kFacts[i].lowest < 0;
    if (dtype.itemsize_bytes == kFacts[i].bytes && (dtype.kind == 'i') == is_signed) {
      return static_cast<TokenType>(i);
    }
  }
  return std::nullopt;
}

std::size_t token_bytes(TokenType type) {
  return facts(type).bytes;
}

std::string_view token_type_name(TokenType type) {
  return facts(type).name;
}

bool widen(TokenType type, const std::byte* from, std::size_t count, TokenType to, std::byte* x,
           std::byte* y, WidenKernel kernel) {
  assert(count >= 1);
  const auto& [portable, widest] =
      kKernels[static_cast<std::size_t>(type) * kTypes + static_cast<std::size_t>(to)];
  const auto run = kernel == WidenKernel::kBest && has_avx2() ? widest : portable;
  return run(from, count, x, y);
}

std::size_t first_misfit(TokenType type, const std::byte* from, std::size_t count, TokenType to) {
  const TypeFacts& limits = facts(to);
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

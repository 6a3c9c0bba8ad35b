#include "writer/store_tokens.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace lowtide {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

// Calls `use` with a value of the C++ type of `type`.
template <typename Use>
void with_type(TokenType type, const Use& use) {
  const auto pick = [&]<std::size_t... I>(std::index_sequence<I...>) {
    (void)((static_cast<std::size_t>(type) == I
                ? (use(std::tuple_element_t<I, TokenCppTypes>{}), true)
                : false) ||
           ...);
  };
  pick(std::make_index_sequence<kTokenTypes>());
}

template <typename T>
T id_at(const std::byte* from, std::size_t i) {
  T id;
  std::memcpy(&id, from + i * sizeof(T), sizeof(T));
  return id;
}

template <typename T>
bool fits_row(T id, const TokenTypeRow& to) {
  return std::cmp_greater_equal(id, to.lowest) && std::cmp_less_equal(id, to.highest);
}

template <typename T>
std::optional<std::size_t> find_unfit(const std::byte* from, std::size_t count,
                                      const TokenTypeRow& to) {
  if (fits_row(std::numeric_limits<T>::min(), to) && fits_row(std::numeric_limits<T>::max(), to)) {
    return std::nullopt;
  }
  // Without a branch per id, so that it is vectorised; which one it was is rarely asked. The
  // highest id of every type is one below a power of two: no id exceeds it, and none is negative,
  // if all of them together have no bit beyond.
  std::make_unsigned_t<T> bits = 0;
  for (std::size_t i = 0; i < count; ++i)
    bits |= static_cast<std::make_unsigned_t<T>>(id_at<T>(from, i));
  const auto most = static_cast<std::make_unsigned_t<T>>(std::numeric_limits<T>::max());
  if (bits <= most && std::cmp_less_equal(bits, to.highest)) return std::nullopt;
  T lowest = 0;
  T highest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const T id = id_at<T>(from, i);
    lowest = std::min(lowest, id);
    highest = std::max(highest, id);
  }
  if (fits_row(lowest, to) && fits_row(highest, to)) return std::nullopt;
  std::size_t i = 0;
  while (i < count && fits_row(id_at<T>(from, i), to)) ++i;
  return i;
}

template <typename From, typename To>
void convert(const std::byte* from, std::size_t count, std::byte* out) {
  if constexpr (sizeof(From) == sizeof(To)) {
    std::memcpy(out, from, count * sizeof(To));
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      const auto id = static_cast<To>(id_at<From>(from, i));
      std::memcpy(out + i * sizeof(To), &id, sizeof(To));
    }
  }
}

}  // namespace

std::optional<std::size_t> first_unfit(TokenType type, const std::byte* from, std::size_t count,
                                       TokenType to) {
  std::optional<std::size_t> found;
  with_type(type, [&]<typename T>(T) { found = find_unfit<T>(from, count, token_type_row(to)); });
  return found;
}

std::string unfit_text(std::uint64_t document, std::uint64_t token, TokenType type,
                       const std::byte* from, TokenType to) {
  std::string id;
  with_type(type, [&]<typename T>(T) { id = std::to_string(id_at<T>(from, 0)); });
  return "document " + std::to_string(document) + ": id " + id + " at token " +
         std::to_string(token) + " does not fit " + std::string(token_type_name(to));
}

void store_tokens(TokenType type, const std::byte* from, std::size_t count, TokenType to,
                  std::byte* out) {
  if (count == 0) return;
  with_type(type, [&]<typename From>(From) {
    with_type(to, [&]<typename To>(To) { convert<From, To>(from, count, out); });
  });
}

}  // namespace lowtide

#include "writer/store_tokens.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace lowtide::store_tokens_test {
namespace {

// Calls `test` with every pair of types.
template <typename Test, std::size_t... I>
void for_pairs(const Test& test, std::index_sequence<I...>) {
  const auto for_second = [&]<std::size_t From>() {
    (test.template
     operator()<std::tuple_element_t<From, TokenCppTypes>, std::tuple_element_t<I, TokenCppTypes>>(
         static_cast<TokenType>(From), static_cast<TokenType>(I)),
     ...);
  };
  (for_second.template operator()<I>(), ...);
}

// The ends of every type, as far as this one holds them, at an odd address.
template <typename From>
std::vector<From> edges() {
  std::vector<From> ids;
  for (const TokenTypeRow& row : kTokenTypeTable) {
    if (std::in_range<From>(row.lowest)) ids.push_back(static_cast<From>(row.lowest));
    if (std::in_range<From>(row.highest)) ids.push_back(static_cast<From>(row.highest));
    if (std::in_range<From>(row.highest / 2)) ids.push_back(static_cast<From>(row.highest / 2));
  }
  return ids;
}

template <typename T>
std::vector<std::byte> shifted(const std::vector<T>& ids) {
  std::vector<std::byte> bytes(ids.size() * sizeof(T) + 1);
  std::memcpy(bytes.data() + 1, ids.data(), ids.size() * sizeof(T));
  return bytes;
}

TEST(StoreTokens, FindsTheFirstIdThatDoesNotFit) {
  for_pairs(
      []<typename From, typename To>(TokenType from, TokenType to) {
        SCOPED_TRACE(std::string(token_type_name(from)) + " to " +
                     std::string(token_type_name(to)));
        for (const From id : edges<From>()) {
          const std::vector<From> ids{1, 2, id, 3, id};
          const auto found = first_unfit(from, shifted(ids).data() + 1, ids.size(), to);
          EXPECT_EQ(found.value_or(99), std::in_range<To>(id) ? 99u : 2u) << +id;
        }
        EXPECT_FALSE(first_unfit(from, nullptr, 0, to));
      },
      std::make_index_sequence<kTokenTypes>());
}

TEST(StoreTokens, KeepsEveryIdThatFits) {
  for_pairs(
      []<typename From, typename To>(TokenType from, TokenType to) {
        SCOPED_TRACE(std::string(token_type_name(from)) + " to " +
                     std::string(token_type_name(to)));
        std::vector<From> ids = edges<From>();
        std::erase_if(ids, [](From id) { return !std::in_range<To>(id); });
        std::vector<std::byte> out(ids.size() * sizeof(To) + 1);
        store_tokens(from, shifted(ids).data() + 1, ids.size(), to, out.data() + 1);
        for (std::size_t i = 0; i < ids.size(); ++i) {
          To stored;
          std::memcpy(&stored, &out[1 + i * sizeof(To)], sizeof(To));
          EXPECT_TRUE(std::cmp_equal(stored, ids[i])) << +stored << " " << +ids[i];
        }
      },
      std::make_index_sequence<kTokenTypes>());
}

}  // namespace
}  // namespace lowtide::store_tokens_test

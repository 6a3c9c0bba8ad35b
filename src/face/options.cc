#include "lowtide/options.h"

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "os/ring.h"
#include "system/limits.h"

namespace lowtide {
namespace {

template <typename Kind, std::size_t N>
Kind parse_word(std::string_view what, std::string_view word,
                const std::array<std::pair<std::string_view, Kind>, N>& words) {
  std::string known;
  for (const auto& [name, kind] : words) {
    if (word == name) return kind;
    known += (known.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  throw std::invalid_argument(std::string(what) + ": unknown value \"" + std::string(word) +
                              "\"; use one of " + known);
}

}  // namespace

EngineKind parse_engine(std::string_view word) {
  using enum EngineKind;
  return parse_word<EngineKind, 4>(
      "engine", word,
      {{{"auto", automatic}, {"pread", pread}, {"uring", uring}, {"memory", memory}}});
}

CacheMode parse_cache(std::string_view word) {
  using enum CacheMode;
  return parse_word<CacheMode, 3>("cache", word,
                                  {{{"auto", automatic}, {"keep", keep}, {"drop", drop}}});
}

OrderKind parse_order(std::string_view word) {
  using enum OrderKind;
  return parse_word<OrderKind, 3>(
      "order", word, {{{"shuffle", shuffle}, {"random", random}, {"sequential", sequential}}});
}

std::string_view order_word(OrderKind order) {
  switch (order) {
    case OrderKind::shuffle:
      return "shuffle";
    case OrderKind::random:
      return "random";
    case OrderKind::sequential:
      break;
  }
  return "sequential";
}

std::string why_no_uring() {
  return Ring::probe();
}

std::uint64_t default_memory_bytes() {
  return default_memory_bytes(SystemRoot{});
}

}  // namespace lowtide

#include "order/check_rows.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>

namespace lowtide {
namespace {

// One unsigned comparison per entry, in its own width, finds both negative and too large ones. A
// chunk is tested without an early exit so that the compiler can vectorise it; only a chunk with a
// fault is searched for the first one.
template <typename T>
void check(std::string_view what, std::span<const T> rows, std::uint64_t limit) {
  using U = std::make_unsigned_t<T>;
  constexpr std::size_t kChunk = 1024;
  if (rows.empty()) return;
  if (limit == 0) refuse_row(what, 0, std::to_string(rows[0]), limit);
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
  const U last = static_cast<U>(std::min(limit - 1, kLargest));
  const auto bad = [last](T value) { return static_cast<U>(value) > last; };
  for (std::size_t first = 0; first < rows.size(); first += kChunk) {
    const auto chunk = rows.subspan(first, std::min(kChunk, rows.size() - first));
    U any = 0;
    for (const T value : chunk) any = static_cast<U>(any | static_cast<U>(bad(value)));
    if (any == 0) continue;
    const auto found = std::find_if(chunk.begin(), chunk.end(), bad);
    refuse_row(what, first + static_cast<std::size_t>(found - chunk.begin()),
               std::to_string(*found), limit);
  }
}

}  // namespace

void check_rows(std::string_view what, const RowList& rows, std::uint64_t limit) {
  std::visit([&](const auto& list) { check(what, list, limit); }, rows);
}

void refuse_row(std::string_view what, std::uint64_t entry, std::string_view value,
                std::uint64_t limit) {
  throw std::out_of_range(
      std::string(what) + ": entry " + std::to_string(entry) + " is " + std::string(value) +
      (limit == 1 ? ", but there is 1 row" : ", but there are " + std::to_string(limit) + " rows"));
}

}  // namespace lowtide

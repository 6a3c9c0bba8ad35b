// row_list.h - checks the row or token numbers of a caller and the memory for what they name, and
// widens the numbers to 64 bits, one slice at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "lowtide/options.h"

namespace lowtide {

inline constexpr std::size_t kTakeRows = 4096;  // planned at a time

[[noreturn]] inline void throw_out_of_bounds(const std::string& index, std::uint64_t rows) {
  throw std::out_of_range("index " + index + " is out of bounds for axis 0 with size " +
                          std::to_string(rows));
}

// Throws std::invalid_argument unless `out` has exactly `count` times `bytes_each` bytes.
inline void check_out(std::span<const std::byte> out, std::uint64_t count,
                      std::uint64_t bytes_each) {
  const std::uint64_t room = out.size();
  const bool fits =
      bytes_each == 0 ? room == 0 : count == room / bytes_each && room % bytes_each == 0;
  if (fits) return;
  throw std::invalid_argument("out has " + std::to_string(room) + " bytes, which is not " +
                              std::to_string(count) + " rows of " + std::to_string(bytes_each) +
                              " bytes");
}

// How many numbers the list has.
[[nodiscard]] inline std::size_t length(const RowList& list) {
  return std::visit([](const auto& all) { return all.size(); }, list);
}

// Calls `use` with an index into the list and up to kTakeRows entries from there. Throws
// std::out_of_range for the first entry that is not below `rows`; by then `use` was called for the
// slices before it.
template <typename Use>
void for_pieces(const RowList& list, std::uint64_t rows, const Use& use) {
  std::visit(
      [&](const auto& all) {
        std::vector<std::uint64_t> piece;
        for (std::size_t first = 0; first < all.size(); first += kTakeRows) {
          piece.clear();
          for (const auto row : all.subspan(first, std::min(kTakeRows, all.size() - first))) {
            // A negative number becomes a huge one and fails this test too.
            if (static_cast<std::uint64_t>(row) >= rows)
              throw_out_of_bounds(std::to_string(row), rows);
            piece.push_back(static_cast<std::uint64_t>(row));
          }
          use(first, piece);
        }
      },
      list);
}

}  // namespace lowtide

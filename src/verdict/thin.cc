#include <algorithm>
#include <set>

#include "verdict/series_parts.h"

namespace lowtide {
namespace {

constexpr std::size_t kRowsOfStretch = 4;  // first, first unknown, highest, lowest

// The rows that one stretch of time keeps.
struct ThinStretch {
  std::optional<std::size_t> first, unknown, highest, lowest;
  std::uint64_t most = 0, least = 0;

  void see(std::size_t row, std::optional<std::uint64_t> total) {
    if (!first) first = row;
    if (!total) {
      if (!unknown) unknown = row;
      return;
    }
    if (!highest || *total > most) {
      highest = row;
      most = *total;
    }
    if (!lowest || *total < least) {
      lowest = row;
      least = *total;
    }
  }
  void keep(std::set<std::size_t>& rows) const {
    for (const auto& row : {first, unknown, highest, lowest}) {
      if (row) rows.insert(*row);
    }
  }
};

void keep_highest(const Column& column, std::set<std::size_t>& rows) {
  const auto highest = std::ranges::max_element(column);  // empty is less than any value
  if (highest != column.end() && *highest) {
    rows.insert(static_cast<std::size_t>(highest - column.begin()));
  }
}

}  // namespace

std::vector<std::size_t> rows_to_keep(const Series& series, std::size_t max_points) {
  std::set<std::size_t> rows;
  const std::size_t count = series.seconds.size();
  if (count <= max_points) {
    for (std::size_t row = 0; row < count; ++row) rows.insert(row);
    return {rows.begin(), rows.end()};
  }
  std::vector<ThinStretch> stretches(std::max<std::size_t>(1, max_points / kRowsOfStretch));
  const double begin = series.seconds.front();
  const double width =
      (series.seconds.back() - begin) / static_cast<double>(stretches.size()) + 1e-9;
  for (std::size_t row = 0; row < count; ++row) {
    const auto place = static_cast<std::size_t>((series.seconds[row] - begin) / width);
    stretches[std::min(place, stretches.size() - 1)].see(row, total_at(series.tree, row));
  }
  for (const ThinStretch& stretch : stretches) stretch.keep(rows);
  for (const View* view : {&series.tree, &series.root, &series.processes}) {
    for (const Layer& layer : view->layers) keep_highest(layer.bytes, rows);
  }
  keep_highest(series.unmapped_cache, rows);
  rows.insert(count - 1);
  return {rows.begin(), rows.end()};
}

}  // namespace lowtide

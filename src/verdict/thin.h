// thin.h - which rows of a long table a picture needs.
#pragma once

#include <cstddef>
#include <vector>

#include "verdict/series.h"

namespace lowtide {

// Row numbers, ascending: for each stretch of time the first row, the first unknown one and those
// with the highest and the lowest total; the last row; for each column the row with its highest
// value. All rows if there are at most max_points.
[[nodiscard]] std::vector<std::size_t> rows_to_keep(const Series& series, std::size_t max_points);

}  // namespace lowtide

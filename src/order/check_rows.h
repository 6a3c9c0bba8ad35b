// check_rows.h - refuses a list of rows that names one that does not exist.
#pragma once

#include <cstdint>
#include <string_view>

#include "lowtide/options.h"

namespace lowtide {

// Throws std::out_of_range unless every entry is in 0 .. limit - 1. The message begins with `what`
// and names the index and the value of the first wrong entry: "rows: entry 5 is 12, but there are
// 10 rows". One pass over the list.
void check_rows(std::string_view what, const RowList& rows, std::uint64_t limit);

// Throws that error. `value` is the wrong entry, as text.
[[noreturn]] void refuse_row(std::string_view what, std::uint64_t entry, std::string_view value,
                             std::uint64_t limit);

}  // namespace lowtide

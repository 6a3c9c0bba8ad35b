// file_rows.h - each file of a trace in one row.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meter/trace.h"

namespace lowtide {

// Bytes; empty is unknown. `size` and `mapped_now` are the last that was told; a file that the last
// list of files does not name is not mapped any more.
struct FileRow {
  std::string path;
  bool deleted = false;
  bool library = false;  // code, or what comes with it
  std::optional<std::uint64_t> size, peak_mapped, peak_cached, mapped_now;
};

// One row for each path, the largest map first.
[[nodiscard]] std::vector<FileRow> file_rows(const Trace& trace);
// All libraries as if they were one file: the peaks are those of the sum. Empty path.
[[nodiscard]] FileRow libraries_row(const Trace& trace);

}  // namespace lowtide

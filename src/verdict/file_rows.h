// file_rows.h - one row per file of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meter/trace.h"

namespace lowtide {

// Bytes; empty is unknown. `size` and `mapped_now` are the last known values; a file that is
// missing from the last list of files is no longer mapped.
struct FileRow {
  std::string path;
  bool deleted = false;
  bool library = false;  // code, or a file that belongs to it
  std::optional<std::uint64_t> size, peak_mapped, peak_cached, mapped_now;
};

// One row per path, the largest map first.
[[nodiscard]] std::vector<FileRow> file_rows(const Trace& trace);
// All libraries as if they were one file, with the peaks of their sum. The path is empty.
[[nodiscard]] FileRow libraries_row(const Trace& trace);

}  // namespace lowtide

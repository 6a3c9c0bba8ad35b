#include "verdict/file_rows.h"

#include <algorithm>
#include <map>

#include "meter/sums.h"
#include "verdict/courses.h"

namespace lowtide {
namespace {

void see(FileRow& row, const FileReading& seen, bool mapped) {
  row.deleted = seen.deleted;
  if (seen.size.value) row.size = seen.size.value;
  raise_known(row.peak_mapped, seen.mapped.value);
  raise_known(row.peak_cached, seen.cached.value);
  if (mapped) row.mapped_now = seen.mapped.value;
}

}  // namespace

std::vector<FileRow> file_rows(const Trace& trace) {
  std::map<std::string, FileRow> by_path;
  for (const Reading& reading : trace.readings) {
    if (!reading.files) continue;
    // The final reading of watched files, after all processes have ended, says nothing about maps.
    const bool mapped = !reading.processes.empty();
    for (auto& [path, row] : by_path) {
      if (mapped) row.mapped_now = 0;
    }
    for (const FileReading& seen : *reading.files) see(by_path[seen.path], seen, mapped);
  }
  std::vector<FileRow> rows;
  for (auto& [path, row] : by_path) {
    row.path = path;
    row.library = is_library(path);
    rows.push_back(std::move(row));
  }
  std::ranges::stable_sort(rows, [](const FileRow& a, const FileRow& b) {
    return a.peak_mapped.value_or(0) > b.peak_mapped.value_or(0);
  });
  return rows;
}

FileRow libraries_row(const Trace& trace) {
  FileRow row;
  for (const Reading& reading : trace.readings) {
    if (!reading.files) continue;
    FileReading together;
    bool none = true;
    for (const FileReading& seen : *reading.files) {
      if (!is_library(seen.path)) continue;
      none = false;
      add_known(together.mapped.value, seen.mapped.value);
      add_known(together.cached.value, seen.cached.value);
    }
    if (none) together.mapped = Figure::known(0);
    see(row, together, !reading.processes.empty());
  }
  row.library = true;
  for (const FileRow& one : file_rows(trace)) {
    if (one.library) add_known(row.size, one.size);
  }
  return row;
}

}  // namespace lowtide

#include "verdict/file_rows.h"

#include <algorithm>
#include <map>

#include "verdict/facts.h"

namespace lowtide {
namespace {

void raise(std::optional<std::uint64_t>& peak, const Figure& figure) {
  if (figure.value) peak = std::max(peak.value_or(0), *figure.value);
}

void add(Figure& sum, const Figure& part) {
  std::uint64_t total = 0;
  if (!part.value) return;
  sum.value =
      __builtin_add_overflow(sum.value.value_or(0), *part.value, &total) ? UINT64_MAX : total;
}

void see(FileRow& row, const FileReading& seen, bool mapped) {
  row.deleted = seen.deleted;
  if (seen.size.value) row.size = seen.size.value;
  raise(row.peak_mapped, seen.mapped);
  raise(row.peak_cached, seen.cached);
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
      add(together.mapped, seen.mapped);
      add(together.cached, seen.cached);
    }
    if (none) together.mapped = Figure::known(0);
    see(row, together, !reading.processes.empty());
  }
  Figure size;
  for (const FileRow& one : file_rows(trace)) {
    if (one.library) add(size, {one.size, {}});
  }
  row.library = true;
  row.size = size.value;
  return row;
}

}  // namespace lowtide

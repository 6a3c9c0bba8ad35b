#include "meter/file_rows.h"

#include <algorithm>
#include <map>

namespace lowtide {
namespace {

void raise(std::optional<std::uint64_t>& peak, const Figure& figure) {
  if (figure.value) peak = std::max(peak.value_or(0), *figure.value);
}

}  // namespace

std::vector<FileRow> file_rows(const Trace& trace) {
  std::map<std::string, FileRow> by_path;
  for (const Reading& reading : trace.readings) {
    if (!reading.files) continue;
    // The last look at watched files, after all processes, says nothing about maps.
    const bool mapped = !reading.processes.empty();
    for (auto& [path, row] : by_path) {
      if (mapped) row.mapped_now = 0;
    }
    for (const FileReading& seen : *reading.files) {
      FileRow& row = by_path[seen.path];
      row.path = seen.path;
      row.deleted = seen.deleted;
      if (seen.size.value) row.size = seen.size.value;
      raise(row.peak_mapped, seen.mapped);
      raise(row.peak_cached, seen.cached);
      if (mapped) row.mapped_now = seen.mapped.value;
    }
  }
  std::vector<FileRow> rows;
  for (auto& [path, row] : by_path) rows.push_back(std::move(row));
  std::ranges::stable_sort(rows, [](const FileRow& a, const FileRow& b) {
    return a.peak_mapped.value_or(0) > b.peak_mapped.value_or(0);
  });
  return rows;
}

}  // namespace lowtide

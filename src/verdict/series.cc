#include "verdict/series.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "meter/sums.h"
#include "verdict/series_parts.h"

namespace lowtide {
namespace {

bool any_known(const Column& column) {
  return std::ranges::any_of(column, [](const auto& value) { return value.has_value(); });
}

bool nothing_to_see(const Layer& layer) {
  return layer.kind != LayerKind::heap &&
         std::ranges::all_of(layer.bytes, [](const auto& value) { return value == 0U; });
}

// The same trace with only the first process, so that the same rules sum it up.
Trace root_alone(const Trace& trace) {
  Trace alone;
  alone.root_pid = trace.root_pid;
  for (const Reading& reading : trace.readings) {
    Reading& one = alone.readings.emplace_back();
    one.seconds = reading.seconds;
    for (const ProcessReading& process : reading.processes) {
      if (process.pid == trace.root_pid) one.processes.push_back(process);
    }
  }
  return alone;
}

std::optional<std::uint64_t> unsplit_of(const Reading& reading) {
  Reading only;
  for (const ProcessReading& process : reading.processes) {
    if (!process.anon.value || !process.file.value || !process.shmem.value) {
      ProcessReading& one = only.processes.emplace_back();
      one.rss_alone = process.rss_alone;
    }
  }
  return sums_of(only).rss;
}

// Bytes read from disk since the trace began. A process that starts later has read all of its bytes
// since then; one that ends keeps the number at which it was last seen.
Column read_so_far(const Trace& trace) {
  std::map<std::pair<int, std::uint64_t>, std::uint64_t> seen;
  Column column;
  std::uint64_t total = 0;
  bool began = false;
  for (const Reading& reading : trace.readings) {
    bool known = false;
    for (const ProcessReading& process : reading.processes) {
      if (!process.disk_bytes.value) continue;
      known = true;
      const std::uint64_t now = *process.disk_bytes.value;
      const auto [before, fresh] = seen.try_emplace({process.pid, process.start_ticks}, 0);
      const bool counts = began || !fresh;
      if (counts && now > before->second) total += now - before->second;
      before->second = now;
    }
    began = began || known;
    column.push_back(known ? std::optional(total) : std::nullopt);
  }
  return column;
}

Column mapped_of(const Trace& trace) {
  Column mapped;
  for (const Reading& reading : trace.readings) mapped.push_back(sums_of(reading).file);
  return mapped;
}

View view_of(const Trace& trace, FileSplit split) {
  Layer heap{LayerKind::heap, "heap", {}}, unsplit{LayerKind::unsplit, "resident, not split", {}},
      tables{LayerKind::page_tables, "page tables", {}}, shared{LayerKind::shared, "shared", {}};
  for (const Reading& reading : trace.readings) {
    const Sums sums = sums_of(reading);
    heap.bytes.push_back(sums.anon);
    unsplit.bytes.push_back(unsplit_of(reading));
    tables.bytes.push_back(sums.page_tables);
    shared.bytes.push_back(sums.shmem);
  }
  View view;
  view.layers.push_back(std::move(heap));
  if (any_known(unsplit.bytes)) view.layers.push_back(std::move(unsplit));
  view.layers.push_back(std::move(tables));
  view.layers.push_back(std::move(shared));
  std::vector<Layer> files = file_layers(trace, mapped_of(trace), split);
  std::ranges::move(files, std::back_inserter(view.layers));
  std::erase_if(view.layers, nothing_to_see);
  view.read_bytes_per_s = read_so_far(trace);  // turned into a rate once the points are chosen
  return view;
}

Column limit_of(const Trace& trace) {
  Column column;
  std::optional<std::uint64_t> limit;
  for (const Reading& reading : trace.readings) {
    if (reading.group) limit = reading.group->limit.value;
    column.push_back(limit);
  }
  return column;
}

// The final reading of watched files, after all processes have ended, is not part of a stack.
bool ends_without_processes(const Trace& trace) {
  return !trace.readings.empty() && trace.readings.back().files &&
         trace.readings.back().processes.empty();
}

void keep(Column& column, const std::vector<std::size_t>& rows) {
  Column kept;
  for (const std::size_t row : rows) kept.push_back(column[row]);
  column = std::move(kept);
}

Column rate_of(const Column& so_far, const std::vector<double>& seconds) {
  Column rate(so_far.size());
  for (std::size_t i = 1; i < so_far.size(); ++i) {
    const double span = seconds[i] - seconds[i - 1];
    if (!so_far[i] || !so_far[i - 1] || span <= 0) continue;
    const double bytes = static_cast<double>(*so_far[i] - *so_far[i - 1]);
    rate[i] = static_cast<std::uint64_t>(std::min(std::round(bytes / span), 0x1p62));
  }
  return rate;
}

void thin_view(View& view, const std::vector<std::size_t>& rows,
               const std::vector<double>& seconds) {
  for (Layer& layer : view.layers) keep(layer.bytes, rows);
  if (view.read_bytes_per_s.empty()) return;
  keep(view.read_bytes_per_s, rows);
  view.read_bytes_per_s = rate_of(view.read_bytes_per_s, seconds);
}

}  // namespace

std::uint64_t highest(const Column& column) {
  std::uint64_t top = 0;
  for (const auto& value : column) top = std::max(top, value.value_or(0));
  return top;
}

std::optional<std::uint64_t> total_at(const View& view, std::size_t point) {
  std::optional<std::uint64_t> total;
  for (const Layer& layer : view.layers) add_known(total, layer.bytes[point]);
  return total;
}

Series series_of(const Trace& trace, std::size_t max_points, FileSplit split) {
  if (ends_without_processes(trace)) {
    Trace alive = trace;
    alive.readings.pop_back();
    return series_of(alive, max_points, split);
  }
  Series series;
  series.tree = view_of(trace, split);
  series.has_children = std::ranges::any_of(
      trace.readings, [](const Reading& reading) { return reading.processes.size() > 1; });
  if (series.has_children) {
    series.root = view_of(root_alone(trace), FileSplit::each);
    series.processes.layers = process_layers(trace);
    series.processes.read_bytes_per_s = series.tree.read_bytes_per_s;
  }
  for (const Reading& reading : trace.readings) series.seconds.push_back(reading.seconds);
  series.unmapped_cache = unmapped_cache(trace, mapped_of(trace), split);
  series.limit = limit_of(trace);
  series.trend = trend_line_of(trace);
  series.end_seconds = seconds_of(trace);

  const std::vector<std::size_t> rows = rows_to_keep(series, max_points);
  std::vector<double> seconds;
  for (const std::size_t row : rows) seconds.push_back(series.seconds[row]);
  series.seconds = std::move(seconds);
  thin_view(series.tree, rows, series.seconds);
  thin_view(series.root, rows, series.seconds);
  thin_view(series.processes, rows, series.seconds);
  keep(series.unmapped_cache, rows);
  keep(series.limit, rows);
  return series;
}

}  // namespace lowtide

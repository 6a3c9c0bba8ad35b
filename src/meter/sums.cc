#include "meter/sums.h"

#include <algorithm>

namespace lowtide {
namespace {

using Bytes = std::optional<std::uint64_t>;

// A hostile trace may contain any number: a sum saturates instead of wrapping.
void add(Bytes& sum, const Bytes& part) {
  if (!part) return;
  std::uint64_t total = 0;
  if (__builtin_add_overflow(sum.value_or(0), *part, &total)) total = UINT64_MAX;
  sum = total;
}

}  // namespace

std::optional<std::uint64_t> rss_of(const ProcessReading& process) {
  if (!process.anon.value || !process.file.value || !process.shmem.value) return process.rss_alone;
  Bytes rss = process.anon.value;
  add(rss, process.file.value);
  add(rss, process.shmem.value);
  return rss;
}

Sums sums_of(const Reading& reading) {
  Sums sums;
  bool every_pss = !reading.processes.empty();
  for (const ProcessReading& process : reading.processes) {
    add(sums.rss, rss_of(process));
    add(sums.anon, process.anon.value);
    add(sums.file, process.file.value);
    add(sums.shmem, process.shmem.value);
    add(sums.page_tables, process.page_tables.value);
    add(sums.swap, process.swap.value);
    add(sums.pss, process.pss.value);
    add(sums.disk_bytes, process.disk_bytes.value);
    add(sums.asked_bytes, process.asked_bytes.value);
    add(sums.threads, process.threads.value);
    every_pss = every_pss && process.pss.value.has_value();
  }
  if (!every_pss) sums.pss.reset();
  return sums;
}

std::optional<std::uint64_t> cached_of(const Reading& reading) {
  Bytes cached;
  // After the processes have ended, only watched files are read: there is no sum to compare with.
  if (!reading.files || reading.processes.empty()) return cached;
  for (const FileReading& file : *reading.files) add(cached, file.cached.value);
  return cached;
}

std::optional<std::uint64_t> group_cache_of(const Reading& reading) {
  if (!reading.group || !reading.group->inactive_file.value) return std::nullopt;
  Bytes cached = reading.group->active_file.value;
  if (cached) add(cached, reading.group->inactive_file.value);
  return cached;
}

std::size_t first_settled(const Trace& trace) {
  if (trace.readings.empty()) return 0;
  const double begin = trace.readings.front().seconds;
  const double length = trace.readings.back().seconds - begin;
  const double settled = begin + length / 10;
  std::size_t first = 0;
  while (first + 1 < trace.readings.size() && trace.readings[first].seconds < settled) ++first;
  return first;
}

double seconds_of(const Trace& trace) {
  double seconds = trace.ending ? trace.ending->seconds : 0;
  if (!trace.readings.empty()) seconds = std::max(seconds, trace.readings.back().seconds);
  for (const Mark& mark : trace.marks) seconds = std::max(seconds, mark.seconds);
  return seconds;
}

Level level_of(const Reading& reading) {
  const Sums sums = sums_of(reading);
  return {.rss = sums.rss,
          .anon = sums.anon,
          .file = sums.file,
          .shmem = sums.shmem,
          .page_tables = sums.page_tables,
          .page_cache = cached_of(reading),
          .group_usage = reading.group ? reading.group->usage.value : std::nullopt};
}

}  // namespace lowtide

#include "meter/sums.h"

#include <algorithm>

namespace lowtide {

std::optional<std::uint64_t> rss_of(const ProcessReading& process) {
  if (!process.anon.value || !process.file.value || !process.shmem.value) return process.rss_alone;
  std::optional<std::uint64_t> rss = process.anon.value;
  add_known(rss, process.file.value);
  add_known(rss, process.shmem.value);
  return rss;
}

Sums sums_of(const Reading& reading) {
  Sums sums;
  bool every_pss = !reading.processes.empty();
  for (const ProcessReading& process : reading.processes) {
    add_known(sums.rss, rss_of(process));
    add_known(sums.anon, process.anon.value);
    add_known(sums.file, process.file.value);
    add_known(sums.shmem, process.shmem.value);
    add_known(sums.page_tables, process.page_tables.value);
    add_known(sums.swap, process.swap.value);
    add_known(sums.pss, process.pss.value);
    add_known(sums.disk_bytes, process.disk_bytes.value);
    add_known(sums.asked_bytes, process.asked_bytes.value);
    add_known(sums.threads, process.threads.value);
    every_pss = every_pss && process.pss.value.has_value();
  }
  if (!every_pss) sums.pss.reset();
  return sums;
}

std::optional<std::uint64_t> cached_of(const Reading& reading) {
  std::optional<std::uint64_t> cached;
  // After the processes have ended, only watched files are read: there is no sum to compare with.
  if (!reading.files || reading.processes.empty()) return cached;
  for (const FileReading& file : *reading.files) add_known(cached, file.cached.value);
  return cached;
}

std::optional<std::uint64_t> group_cache_of(const Reading& reading) {
  if (!reading.group || !reading.group->inactive_file.value) return std::nullopt;
  std::optional<std::uint64_t> cached = reading.group->active_file.value;
  if (cached) add_known(cached, reading.group->inactive_file.value);
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

#include <algorithm>

#include "meter/sums.h"
#include "meter/verdict.h"

namespace lowtide {
namespace {

using Bytes = std::optional<std::uint64_t>;

// A hostile trace may hold any number: a sum stays at the largest instead of wrapping.
void add(Bytes& sum, const Bytes& part) {
  if (!part) return;
  std::uint64_t total = 0;
  if (__builtin_add_overflow(sum.value_or(0), *part, &total)) total = UINT64_MAX;
  sum = total;
}

void raise(Bytes& peak, const Bytes& value) {
  if (value) peak = std::max(peak.value_or(0), *value);
}

// First and last known value of one series.
struct Ends {
  std::optional<std::uint64_t> first, last;
  int known = 0;

  void see(const Bytes& value) {
    if (!value) return;
    if (!first) first = value;
    last = value;
    ++known;
  }
  [[nodiscard]] std::optional<std::int64_t> growth() const {
    if (known < 2) return std::nullopt;
    return static_cast<std::int64_t>(*last - *first);
  }
};

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
  if (!reading.files) return cached;
  for (const FileReading& file : *reading.files) add(cached, file.cached.value);
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

Peak peak_of(const Trace& trace) {
  Peak peak;
  for (const Reading& reading : trace.readings) {
    const Sums sums = sums_of(reading);
    raise(peak.rss, sums.rss);
    raise(peak.anon, sums.anon);
    raise(peak.file, sums.file);
    raise(peak.shmem, sums.shmem);
    raise(peak.page_tables, sums.page_tables);
    raise(peak.page_cache, cached_of(reading));
    if (reading.group) raise(peak.group_usage, reading.group->usage.value);
  }
  return peak;
}

Growth growth_of(const Trace& trace) {
  Ends rss, anon, file, shmem, page_tables, page_cache;
  for (std::size_t i = first_settled(trace); i < trace.readings.size(); ++i) {
    const Sums sums = sums_of(trace.readings[i]);
    rss.see(sums.rss);
    anon.see(sums.anon);
    file.see(sums.file);
    shmem.see(sums.shmem);
    page_tables.see(sums.page_tables);
    page_cache.see(cached_of(trace.readings[i]));
  }
  return {.rss = rss.growth(),
          .anon = anon.growth(),
          .file = file.growth(),
          .shmem = shmem.growth(),
          .page_tables = page_tables.growth(),
          .page_cache = page_cache.growth()};
}

}  // namespace lowtide

#include <algorithm>
#include <array>

#include "meter/lives.h"
#include "meter/sums.h"
#include "meter/verdict.h"

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

void raise(Bytes& peak, const Bytes& value) {
  if (value) peak = std::max(peak.value_or(0), *value);
}

// The first and last known value of each kind of memory, after start-up until the end of the run.
struct Ends {
  Level first, last;
  std::array<int, 7> known{};

  void see(const Level& level) {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      const Bytes& value = level.*kKinds[i];
      if (!value) continue;
      if (known[i]++ == 0) first.*kKinds[i] = value;
      last.*kKinds[i] = value;
    }
  }
  [[nodiscard]] std::optional<std::int64_t> growth(std::size_t kind) const {
    if (known[kind] < 2) return std::nullopt;
    return static_cast<std::int64_t>(*(last.*kKinds[kind]) - *(first.*kKinds[kind]));
  }

  static constexpr std::array<Bytes Level::*, 7> kKinds{
      &Level::rss,         &Level::anon,       &Level::file,       &Level::shmem,
      &Level::page_tables, &Level::page_cache, &Level::group_usage};
};

Ends ends_of(const Trace& trace) {
  Ends ends;
  if (trace.readings.empty()) return ends;
  const std::size_t end = last_whole(trace, lives_of(trace));
  for (std::size_t i = first_settled(trace); i < trace.readings.size(); ++i) {
    Level level = level_of(trace.readings[i]);
    if (i > end) {  // the page cache outlives the processes
      Level stays;
      stays.page_cache = level.page_cache;
      stays.group_usage = level.group_usage;
      level = stays;
    }
    ends.see(level);
  }
  return ends;
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

Level start_of(const Trace& trace) {
  return ends_of(trace).first;
}

Peak peak_of(const Trace& trace) {
  Peak peak;
  for (const Reading& reading : trace.readings) {
    const Level level = level_of(reading);
    for (const auto kind : Ends::kKinds) raise(peak.*kind, level.*kind);
  }
  return peak;
}

Level end_of(const Trace& trace) {
  return ends_of(trace).last;
}

Growth growth_of(const Trace& trace) {
  const Ends ends = ends_of(trace);
  return {.rss = ends.growth(0),
          .anon = ends.growth(1),
          .file = ends.growth(2),
          .shmem = ends.growth(3),
          .page_tables = ends.growth(4),
          .page_cache = ends.growth(5)};
}

FileCache file_cache_of(const Trace& trace, const std::string& path) {
  FileCache cache;
  const std::size_t settled = first_settled(trace);
  for (std::size_t i = 0; i < trace.readings.size(); ++i) {
    if (!trace.readings[i].files) continue;
    for (const FileReading& file : *trace.readings[i].files) {
      if (file.path != path || !file.cached.value) continue;
      if (!cache.start || i <= settled) cache.start = file.cached.value;
      raise(cache.peak, file.cached.value);
      cache.end = file.cached.value;
      if (file.size.value) cache.size = file.size.value;
    }
  }
  return cache;
}

}  // namespace lowtide

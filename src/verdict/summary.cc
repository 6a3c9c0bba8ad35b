#include "verdict/summary.h"

#include <array>

#include "meter/sums.h"
#include "verdict/lives.h"

namespace lowtide {
namespace {

using Bytes = std::optional<std::uint64_t>;

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

Level start_of(const Trace& trace) {
  return ends_of(trace).first;
}

Peak peak_of(const Trace& trace) {
  Peak peak;
  for (const Reading& reading : trace.readings) {
    const Level level = level_of(reading);
    for (const auto kind : Ends::kKinds) raise_known(peak.*kind, level.*kind);
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
      raise_known(cache.peak, file.cached.value);
      cache.end = file.cached.value;
      if (file.size.value) cache.size = file.size.value;
    }
  }
  return cache;
}

}  // namespace lowtide

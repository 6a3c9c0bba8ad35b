// sums.h - one reading as totals over the whole tree. The verdict, the peaks, the picture and the
// JSON all use these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/checked.h"
#include "lowtide/profile.h"
#include "meter/trace.h"

namespace lowtide {

// Adds what is known. A hostile trace may contain any number: a sum saturates instead of wrapping.
inline void add_known(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& more) {
  if (more) sum = saturating_add(sum.value_or(0), *more);
}
inline void raise_known(std::optional<std::uint64_t>& peak,
                        const std::optional<std::uint64_t>& value) {
  if (value) peak = std::max(peak.value_or(0), *value);
}

// Bytes summed over the processes of one reading. A process whose figure is unknown is left out; a
// sum is empty if no process of the reading has the figure.
struct Sums {
  std::optional<std::uint64_t> rss;  // anon + file + shmem
  std::optional<std::uint64_t> anon, file, shmem, page_tables, swap;
  std::optional<std::uint64_t> pss;  // only if it is known for every process
  std::optional<std::uint64_t> disk_bytes, asked_bytes, threads;
};
[[nodiscard]] Sums sums_of(const Reading& reading);

[[nodiscard]] std::optional<std::uint64_t> rss_of(const ProcessReading& process);

// The page cache of all files, for a reading that includes files; empty if none is known, and for a
// reading without processes.
[[nodiscard]] std::optional<std::uint64_t> cached_of(const Reading& reading);

// The page cache charged to the memory group; empty if it is unknown.
[[nodiscard]] std::optional<std::uint64_t> group_cache_of(const Reading& reading);

// The totals that a user sees.
[[nodiscard]] Level level_of(const Reading& reading);

// The first reading after start-up, which is the first tenth of the run.
[[nodiscard]] std::size_t first_settled(const Trace& trace);

// How long the run took: until its ending, or until the last thing that was seen.
[[nodiscard]] double seconds_of(const Trace& trace);

}  // namespace lowtide

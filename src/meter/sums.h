// sums.h - one reading as numbers of the whole tree: what the verdict, the peaks, the picture and
// the JSON all count by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "meter/trace.h"

namespace lowtide {

// Bytes over the processes of one reading. A process whose figure is unknown is left out; a sum is
// empty where no process of the reading tells it.
struct Sums {
  std::optional<std::uint64_t> rss;  // anon + file + shmem
  std::optional<std::uint64_t> anon, file, shmem, page_tables, swap;
  std::optional<std::uint64_t> pss;  // only where every process told it
  std::optional<std::uint64_t> disk_bytes, asked_bytes, threads;
};
[[nodiscard]] Sums sums_of(const Reading& reading);

[[nodiscard]] std::optional<std::uint64_t> rss_of(const ProcessReading& process);

// The page cache of all files of a reading that asked for them; empty where none is known, and in a
// reading without processes.
[[nodiscard]] std::optional<std::uint64_t> cached_of(const Reading& reading);

// The page cache that is charged to the memory group; empty where it is not known.
[[nodiscard]] std::optional<std::uint64_t> group_cache_of(const Reading& reading);

// The first reading after the start-up, which is the first tenth of the run.
[[nodiscard]] std::size_t first_settled(const Trace& trace);

// How long the run was: to its ending, or to the last thing that was seen.
[[nodiscard]] double seconds_of(const Trace& trace);

}  // namespace lowtide

#include "engine/routed_engine.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lowtide {

RoutedEngine::RoutedEngine(std::shared_ptr<Files> files, RoutedEngineOptions options)
    : map_(std::move(files)), options_(std::move(options)) {}

// Counting first costs one lookup in the map per read. It saves splitting the set, which copies its
// reads, if all of them hit or all miss, as in most sets.
std::size_t RoutedEngine::count_hits(std::span<const Read> reads) noexcept {
  if (options_.past_cache) return 0;
  map_.refresh();
  return static_cast<std::size_t>(std::count_if(
      reads.begin(), reads.end(), [&](const Read& read) { return map_.resident(read.from); }));
}

void RoutedEngine::submit(ReadSet& set) noexcept {
  const std::size_t hits = count_hits(set.reads);
  if (hits == set.reads.size()) {
    options_.hot->submit(set);
  } else if (hits == 0) {
    options_.cold->submit(set);
  } else {
    try {
      // The map may have changed since the hits were counted. That is harmless: both lanes give the
      // same bytes, and a half may be empty. Misses go first: the disk works while hits are copied.
      splits_.submit(
          set, [&](const Read& read) { return map_.resident(read.from); },
          [&](ReadSet& cached) { options_.hot->submit(cached); },
          [&](ReadSet& misses) { options_.cold->submit(misses); });
    } catch (const std::bad_alloc&) {
      options_.cold->submit(set);  // correct for every read, if not the fastest
    }
  }
}

Outcome RoutedEngine::read(std::span<const Read> reads) noexcept {
  Outcome outcome;
  const bool hits = count_hits(reads) == reads.size();
  // A few uncached pages in a cached file are read like the rest, which caches them too: handing a
  // small set to another thread costs more than one miss.
  const double share = hits ? 1.0 : map_.share();
  const double misses = static_cast<double>(reads.size()) * (1 - share);
  const bool nearly =
      !options_.past_cache && options_.fills_cache && (share >= CacheMap::kHotShare || misses <= 1);
  if ((hits || nearly) && options_.hot->read_here(reads, &outcome)) return outcome;
  return Engine::read(reads);
}

// Nearly cached counts as cached: the few misses do not pay for sorting all of the hits.
Prospect RoutedEngine::prospect() noexcept {
  if (!options_.past_cache) map_.refresh();
  return {.resident = !options_.past_cache && map_.share() >= CacheMap::kHotShare,
          .gap_bytes = options_.cold->gap_bytes(),
          .cached_distance_bytes = options_.hot->gap_bytes()};
}

Traffic RoutedEngine::traffic() const noexcept {
  const Traffic hot = options_.hot->traffic(), cold = options_.cold->traffic();
  return {.bytes_read = hot.bytes_read + cold.bytes_read,
          .reads = hot.reads + cold.reads,
          .merged = hot.merged + cold.merged};
}

// Names the lanes that would serve reads now, judging by what is cached rather than by past reads.
std::string RoutedEngine::name() const {
  if (options_.past_cache) return options_.cold_name;
  const double share = map_.share();
  if (options_.hot_name == options_.cold_name || share >= CacheMap::kHotShare)
    return options_.hot_name;
  if (share <= CacheMap::kColdShare) return options_.cold_name;
  return options_.hot_name + "+" + options_.cold_name;
}

std::string RoutedEngine::reason() const {
  if (!options_.reason.empty()) return options_.reason;
  std::string text = options_.past_cache ? "bypasses the page cache, as requested" : map_.reason();
  if (!options_.no_ring.empty()) text += "; no io_uring here (" + options_.no_ring + ")";
  return text;
}

}  // namespace lowtide

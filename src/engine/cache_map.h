// cache_map.h - which parts of the shards are in the page cache, by zones of 4 MiB or more.
//
// It decides for each read whether the page cache or the disk will serve it. It asks the kernel
// when a shard is first used and again from time to time, never per batch. A shard has at most
// 16384 zones, so asking stays cheap for any file. If the kernel does not answer (cachestat is
// missing or forbidden), a few reads of both kinds are timed instead. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/extent.h"
#include "core/mutex.h"
#include "os/files.h"

namespace lowtide {

class CacheMap {
 public:
  static constexpr std::uint64_t kZoneBytes = 4 * 1024 * 1024;
  static constexpr std::uint64_t kMostZones = 16384;
  // What it holds per shard that was used and is no longer than a few zones.
  static constexpr std::uint64_t kShardBytes = 128;
  static constexpr double kHotShare = 0.98;
  static constexpr double kColdShare = 0.02;

  explicit CacheMap(std::shared_ptr<Files> files);
  ~CacheMap();

  // Whether every zone of the extent is completely cached, and also the next ones within the reach
  // of the kernel's read-ahead: a hit near the end of the cached part would make the kernel fetch
  // what follows it.
  [[nodiscard]] bool resident(const Extent& extent) noexcept;

  // The cached share of the shards asked about so far (all, or 64 spread evenly if there are more).
  [[nodiscard]] double share() const;
  // "97 % of the data is in the page cache", or how it was judged instead.
  [[nodiscard]] std::string reason() const;

  // Asks again about shards whose answer is too old, 64 at a time and in turn. An answer is too old
  // after a quarter of a second or 64 times the duration of asking: the kernel looks at every page
  // of a file, which takes long for terabytes in small pages. Cheap if no answer is too old.
  void refresh() noexcept;

 private:
  struct ShardMap;
  [[nodiscard]] ShardMap* ask(std::uint32_t shard) noexcept LOWTIDE_EXCLUDES(mutex_);
  void ask_again(std::uint64_t now) noexcept LOWTIDE_REQUIRES(mutex_);
  void update(ShardMap& map, std::uint32_t shard) noexcept LOWTIDE_REQUIRES(mutex_);
  static void update_zones(ShardMap& map, const File& file, std::uint64_t cached_bytes);
  static void find_whole_zones(ShardMap& map, const File& file, std::uint64_t first,
                               std::uint64_t last, std::uint64_t cached_bytes);

  std::shared_ptr<Files> files_;
  std::vector<std::atomic<ShardMap*>> maps_;  // by shard; nullptr until used
  mutable Mutex mutex_;                       // only one thread asks at a time
  std::atomic<std::uint64_t> refreshed_ns_{0};
  std::atomic<std::uint64_t> good_for_ns_;
  std::uint32_t next_refreshed_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  std::string unknown_why_ LOWTIDE_GUARDED_BY(mutex_);  // empty if cachestat answers
};

}  // namespace lowtide

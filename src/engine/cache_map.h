// cache_map.h - which parts of the shards are in the page cache, by blocks of 4 MiB or more.
//
// It decides for each read whether a copy from memory or the disk will serve it. Asked of the
// kernel when a shard is first touched and again by time, never by batch; at most 16384 blocks for
// one shard, so a question stays cheap for any file. Where the kernel does not tell (cachestat
// missing or forbidden) a few reads of both kinds are timed. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/extent.h"
#include "os/files.h"

namespace lowtide {

class CacheMap {
 public:
  static constexpr std::uint64_t kBlockBytes = 4 * 1024 * 1024;
  static constexpr std::uint64_t kMostBlocks = 16384;
  // What it holds for each shard that was touched and is no longer than a few blocks.
  static constexpr std::uint64_t kShardBytes = 128;
  static constexpr double kHotShare = 0.98;
  static constexpr double kColdShare = 0.02;

  explicit CacheMap(std::shared_ptr<Files> files);
  ~CacheMap();

  // Whether every block that the extent touches is wholly cached, and the next ones up to the reach
  // of the kernel's read-ahead too: a hit beside the border of the cached part would fetch what
  // lies behind it.
  [[nodiscard]] bool resident(const Extent& extent) noexcept;

  // Share of the shards asked so far (all, or 64 spread evenly where there are more) that is
  // cached.
  [[nodiscard]] double share() const;
  // "97 % of the data is in the page cache (cachestat)", or how it was judged instead.
  [[nodiscard]] std::string reason() const;

  // Asks again for shards, 64 at a time and each in its turn, whose answer is older than a quarter
  // of a second, or than 64 times what asking took: the kernel looks at every page of a file, and
  // terabytes in small pages take it long. Cheap when none is.
  void refresh() noexcept;

 private:
  struct ShardMap;
  [[nodiscard]] ShardMap* ask(std::uint32_t shard) noexcept;
  void update(ShardMap& map, std::uint32_t shard) noexcept;
  void update_blocks(ShardMap& map, const File& file, std::uint64_t cached_bytes);

  std::shared_ptr<Files> files_;
  std::vector<std::atomic<ShardMap*>> maps_;  // by shard; nullptr until touched
  mutable std::mutex mutex_;                  // one question at a time
  std::atomic<std::uint64_t> refreshed_ns_{0};
  std::atomic<std::uint64_t> good_for_ns_;
  std::uint32_t next_refreshed_ = 0;  // guarded by mutex_
  std::string unknown_why_;           // empty where cachestat answers
};

}  // namespace lowtide

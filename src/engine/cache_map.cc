#include "engine/cache_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>

#include "core/clock.h"
#include "os/memory.h"
#include "os/residency.h"

namespace lowtide {
namespace {

// Pages come and go within seconds: in this time, a disk of 2 GB/s brings in half a gigabyte.
// Asking is cheap: 55 us for a file of 2 GB.
constexpr std::uint64_t kMaxAgeNs = 250'000'000;
constexpr std::uint64_t kAgeByCost = 64;  // asking takes at most 1/64 of the time
// Bounds one call to a few milliseconds, however many shards there are.
constexpr std::uint32_t kShardsAskedAtOnce = 64;
constexpr std::uint64_t kReadAheadBytes = 8 * 1024 * 1024;  // a large value, as on tuned disks
constexpr std::size_t kTimedReads = 8;  // a median of eight survives three odd ones
constexpr std::size_t kTimedBytes = 4096;
// A cached read takes a microsecond or two and one from the fastest disk twenty or more.
constexpr std::uint64_t kCachedIsFasterBy = 4;

// Median time of a few reads spread over the file; 0 if one fails. Buffered reads leave a few pages
// in the cache.
std::uint64_t median_read_ns(const File& file, bool direct) {
  Memory buffer(kTimedBytes);
  const std::uint64_t offsets = file.shard().size_bytes / kTimedBytes;
  if (offsets == 0) return 0;
  std::array<std::uint64_t, kTimedReads> took{};
  for (std::size_t i = 0; i < kTimedReads; ++i) {
    // The two kinds read different offsets, so that pages from the first cannot serve the second.
    const std::uint64_t at =
        (offsets * (2 * i + (direct ? 1 : 0)) / (2 * kTimedReads)) * kTimedBytes;
    const std::uint64_t before = now_ns();
    const ReadResult result =
        direct ? file.read_direct(at, buffer.bytes()) : file.read(at, buffer.bytes());
    took[i] = now_ns() - before;
    if (result.placed_bytes != kTimedBytes) return 0;
  }
  std::sort(took.begin(), took.end());
  return took[kTimedReads / 2];
}

bool looks_cached(const File& file) {
  if (file.direct_fd() < 0) return false;
  const std::uint64_t direct = median_read_ns(file, true);
  const std::uint64_t buffered = median_read_ns(file, false);
  return direct > 0 && buffered > 0 && buffered * kCachedIsFasterBy < direct;
}

}  // namespace

struct CacheMap::ShardMap {
  explicit ShardMap(std::uint64_t size) : size_bytes(size), zone_bytes(kZoneBytes), hot() {
    while (size / zone_bytes >= kMostZones) zone_bytes *= 2;
    zones = (size + zone_bytes - 1) / zone_bytes;
    hot = std::vector<std::atomic<char>>(zones);
  }

  // Where a zone begins; for the number of zones, where the shard ends.
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t zone) const {
    return std::min(size_bytes, zone * zone_bytes);
  }

  std::uint64_t size_bytes;
  std::uint64_t zone_bytes;
  std::uint64_t zones = 0;
  std::vector<std::atomic<char>> hot;  // 1: served from the page cache
  std::atomic<std::uint64_t> cached_bytes{0};
  std::atomic<std::uint64_t> asked_ns{0};
};

CacheMap::CacheMap(std::shared_ptr<Files> files)
    : files_(std::move(files)), maps_(files_->shards()->size()), good_for_ns_(kMaxAgeNs) {
  const auto shards = static_cast<std::uint32_t>(maps_.size());
  const std::uint32_t asked = std::min(shards, kShardsAskedAtOnce);
  for (std::uint32_t i = 0; i < asked; ++i) {
    (void)ask(static_cast<std::uint32_t>(std::uint64_t{i} * shards / asked));
  }
  refreshed_ns_ = now_ns();
}

CacheMap::~CacheMap() {
  for (auto& map : maps_) delete map.load();
}

CacheMap::ShardMap* CacheMap::ask(std::uint32_t shard) noexcept try {
  const MutexLock lock(mutex_);
  if (ShardMap* known = maps_[shard].load(std::memory_order_acquire)) return known;
  auto fresh = std::make_unique<ShardMap>(files_->shards()->size_bytes(shard));
  update(*fresh, shard);
  maps_[shard].store(fresh.get(), std::memory_order_release);
  return fresh.release();
} catch (const std::bad_alloc&) {
  return nullptr;
}

void CacheMap::update(ShardMap& map, std::uint32_t shard) noexcept try {
  map.asked_ns = now_ns();
  if (map.zones == 0) return;
  const std::shared_ptr<File> file = files_->open(shard);
  if (unknown_why_.empty()) {
    const auto whole = residency(*file, 0, 0, &unknown_why_);
    if (whole) {
      update_zones(map, *file, whole->cached_bytes);
      return;
    }
  }
  const bool cached = looks_cached(*file);
  map.cached_bytes = cached ? map.size_bytes : 0;
  for (auto& zone : map.hot) zone.store(cached ? 1 : 0, std::memory_order_relaxed);
} catch (...) {
  // If a shard cannot be opened, the reads that need its bytes report it.
  for (auto& zone : map.hot) zone.store(0, std::memory_order_relaxed);
}

// Asks about halves, so that a file that is mostly cached or mostly uncached costs few calls,
// however long it is. Stores 1 in `hot` for each of the zones first .. last - 1 that is cached
// completely; `cached_bytes` of them are cached.
void CacheMap::find_whole_zones(ShardMap& map, const File& file, std::uint64_t first,
                                std::uint64_t last, std::uint64_t cached_bytes) {
  const std::uint64_t begin = map.offset_of(first), end = map.offset_of(last);
  if (cached_bytes == 0 || cached_bytes >= end - begin || last - first == 1) {
    const char whole = cached_bytes >= end - begin ? 1 : 0;
    for (std::uint64_t i = first; i < last; ++i) map.hot[i].store(whole, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t half = first + (last - first) / 2, middle = map.offset_of(half);
  const auto cached = [&](std::uint64_t from, std::uint64_t to) {
    const auto part = residency(file, from, to - from);
    return part ? part->cached_bytes : 0;
  };
  const std::uint64_t left = cached(begin, middle);
  // The rest of the cached bytes is in the second half, unless pages were evicted meanwhile. So the
  // kernel is asked about the second half only if it seems to be complete.
  std::uint64_t right = cached_bytes - std::min(cached_bytes, left);
  if (right >= end - middle) right = cached(middle, end);
  find_whole_zones(map, file, first, half, left);
  find_whole_zones(map, file, half, last, right);
}

void CacheMap::update_zones(ShardMap& map, const File& file, std::uint64_t cached_bytes) {
  map.cached_bytes = cached_bytes;
  find_whole_zones(map, file, 0, map.zones, cached_bytes);
  if (cached_bytes == 0 || cached_bytes >= map.size_bytes) return;
  // A buffered read of a cached zone can trigger read-ahead into an uncached one behind it. So a
  // zone counts as cached only if enough of what follows is cached too; hence from the end.
  // Read-ahead never goes beyond the end of the file.
  std::uint64_t cached_behind = kReadAheadBytes;
  for (std::uint64_t i = map.zones; i-- > 0;) {
    const bool whole = map.hot[i].load(std::memory_order_relaxed) != 0;
    if (cached_behind < kReadAheadBytes) map.hot[i].store(0, std::memory_order_relaxed);
    cached_behind = whole ? cached_behind + map.offset_of(i + 1) - map.offset_of(i) : 0;
  }
}

bool CacheMap::resident(const Extent& extent) noexcept {
  ShardMap* map = maps_[extent.shard].load(std::memory_order_acquire);
  if (map == nullptr) map = ask(extent.shard);
  if (map == nullptr) return false;
  if (map->zones == 0 || extent.size_bytes == 0) return true;
  const std::uint64_t first = extent.offset_bytes / map->zone_bytes;
  const std::uint64_t last = (extent.end_bytes() - 1) / map->zone_bytes;
  for (std::uint64_t i = first; i <= last; ++i) {
    if (i >= map->zones || map->hot[i].load(std::memory_order_relaxed) == 0) return false;
  }
  return true;
}

void CacheMap::refresh() noexcept {
  const std::uint64_t now = now_ns();
  if (now - refreshed_ns_.load(std::memory_order_relaxed) < good_for_ns_) return;
  if (!mutex_.try_lock()) return;  // another thread is asking: its answer will do
  ask_again(now);
  mutex_.unlock();
}

void CacheMap::ask_again(std::uint64_t now) noexcept {
  // Timed reads cost disk reads themselves, so they are not repeated.
  if (unknown_why_.empty()) {
    const auto shards = static_cast<std::uint32_t>(maps_.size());
    std::uint32_t asked = 0;
    for (std::uint32_t n = 0; n < shards && asked < kShardsAskedAtOnce; ++n) {
      next_refreshed_ = (next_refreshed_ + 1) % shards;
      ShardMap* map = maps_[next_refreshed_].load(std::memory_order_relaxed);
      if (map == nullptr || now - map->asked_ns < kMaxAgeNs) continue;
      update(*map, next_refreshed_);
      ++asked;
    }
  }
  const std::uint64_t done = now_ns();
  good_for_ns_ = std::max(kMaxAgeNs, (done - now) * kAgeByCost);
  refreshed_ns_ = done;
}

double CacheMap::share() const {
  std::uint64_t cached = 0, total = 0;
  for (const auto& entry : maps_) {
    if (const ShardMap* map = entry.load(std::memory_order_acquire)) {
      cached += map->cached_bytes.load(std::memory_order_relaxed);
      total += map->size_bytes;
    }
  }
  return total == 0 ? 1.0 : static_cast<double>(cached) / static_cast<double>(total);
}

std::string CacheMap::reason() const {
  const double percent = share() * 100;
  const MutexLock lock(mutex_);
  if (unknown_why_.empty()) {
    const bool between = percent > 0 && percent < 100;
    const int shown = static_cast<int>(
        std::lround(std::clamp(percent, between ? 1.0 : 0.0, between ? 99.0 : 100.0)));
    return std::to_string(shown) + " % of the data is in the page cache";
  }
  return std::string("timed reads suggest that the data is ") +
         (percent >= 50 ? "cached" : "not cached") + " (" + unknown_why_ + ")";
}

}  // namespace lowtide

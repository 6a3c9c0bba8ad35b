#include "engine/routed_engine.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lowtide {
namespace {

constexpr std::size_t kMostSpareSplits = 8;

}  // namespace

// A set in which some reads hit and some miss: one half for each lane. The whole set is done when
// both halves are.
struct RoutedEngine::Split {
  struct Half final : ReadSet {
    Split* split = nullptr;
    std::vector<Read> copies;
    std::vector<std::uint32_t> where;  // index in the whole

    void done(const Outcome& outcome) noexcept override { split->half_done(*this, outcome); }
    [[nodiscard]] bool cancelled() const noexcept override { return split->whole->cancelled(); }
    void add(const Read& read, std::size_t index) {
      copies.push_back(read);
      where.push_back(static_cast<std::uint32_t>(index));
    }
    void clear() {
      copies.clear();
      where.clear();
    }
  };

  explicit Split(RoutedEngine* engine) : owner(engine) { hits.split = misses.split = this; }

  void half_done(const Half& half, const Outcome& outcome) noexcept {
    bool last = false;
    Outcome total;
    {
      const std::lock_guard lock(mutex);
      if (!outcome.ok() && result.ok()) {
        result = outcome;
        result.read = half.where[outcome.read];
      }
      last = --left == 0;
      total = result;
    }
    if (!last) return;
    // Recycles first: once the last set is done, the engine may be destroyed.
    ReadSet* set = whole;
    owner->recycle(this);
    set->done(total);
  }

  RoutedEngine* owner;
  ReadSet* whole = nullptr;
  Half hits, misses;
  std::mutex mutex;
  int left = 0;
  Outcome result;
};

RoutedEngine::RoutedEngine(std::shared_ptr<Files> files, RoutedEngineOptions options)
    : files_(std::move(files)), map_(files_), options_(std::move(options)) {
  spare_.reserve(kMostSpareSplits);  // recycle() must not allocate, because it must not throw
}

RoutedEngine::~RoutedEngine() = default;

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
      submit_split(set);
    } catch (const std::bad_alloc&) {
      options_.cold->submit(set);  // correct for every read, if not the fastest
    }
  }
}

void RoutedEngine::submit_split(ReadSet& set) {
  std::unique_ptr<Split> split;
  {
    const std::lock_guard lock(mutex_);
    if (!spare_.empty()) {
      split = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  if (!split) split = std::make_unique<Split>(this);
  split->whole = &set;
  split->hits.clear();
  split->misses.clear();
  split->result = {};
  for (std::size_t i = 0; i < set.reads.size(); ++i) {
    // The map may have changed since the hits were counted. That is harmless: both lanes give the
    // same bytes, and a half may be empty.
    (map_.resident(set.reads[i].from) ? split->hits : split->misses).add(set.reads[i], i);
  }
  split->hits.reads = split->hits.copies;
  split->misses.reads = split->misses.copies;
  const bool both = !split->hits.reads.empty() && !split->misses.reads.empty();
  split->left = both ? 2 : 1;
  // From here on the split belongs to the half that ends last. With only one half, it may be
  // recycled before submit() returns, so it is not looked at after that. Misses go first: the disk
  // works while hits are copied.
  Split* flying = split.release();
  const bool has_misses = !flying->misses.reads.empty();
  const bool has_hits = !flying->hits.reads.empty();
  if (has_misses) options_.cold->submit(flying->misses);
  if (has_hits) options_.hot->submit(flying->hits);
}

void RoutedEngine::recycle(Split* split) noexcept {
  std::unique_ptr<Split> owned(split);
  const std::lock_guard lock(mutex_);
  if (spare_.size() < spare_.capacity()) spare_.push_back(std::move(owned));
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

Prospect RoutedEngine::prospect() noexcept {
  if (options_.past_cache) return {.gap_bytes = options_.cold->gap_bytes()};
  map_.refresh();
  return {.resident = map_.share() >= CacheMap::kHotShare, .gap_bytes = options_.cold->gap_bytes()};
}

Traffic RoutedEngine::traffic() const noexcept {
  const Traffic hot = options_.hot->traffic(), cold = options_.cold->traffic();
  return {.bytes_read = hot.bytes_read + cold.bytes_read,
          .reads = hot.reads + cold.reads,
          .merged = hot.merged + cold.merged};
}

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
  std::string text = options_.past_cache ? "bypasses the page cache, as asked for" : map_.reason();
  if (!options_.no_ring.empty()) text += "; no io_uring here (" + options_.no_ring + ")";
  return text;
}

}  // namespace lowtide

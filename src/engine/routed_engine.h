// routed_engine.h - two lanes, one for bytes in the page cache and one for bytes on the disk, and
// the map that decides between them. Hits are copied while misses are in flight.
#pragma once

#include <memory>
#include <string>

#include "engine/cache_map.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/split_sets.h"

namespace lowtide {

struct RoutedEngineOptions {
  Claim claim;  // for the buffers of both lanes
  std::unique_ptr<Lane> hot, cold;
  std::string hot_name, cold_name;
  std::string reason;        // fixed; empty: that of the map
  bool fills_cache = false;  // pages that are read may stay in the page cache
  bool past_cache = false;   // treats every read as one of the disk
  std::string no_ring;       // why no ring is used although one would have been; else empty
};

class RoutedEngine final : public Engine {
 public:
  RoutedEngine(std::shared_ptr<Files> files, RoutedEngineOptions options);

  void submit(ReadSet& set) noexcept override;
  [[nodiscard]] Outcome read(std::span<const Read> reads) noexcept override;
  [[nodiscard]] Prospect prospect() noexcept override;
  [[nodiscard]] Traffic traffic() const noexcept override;
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::string reason() const override;

 private:
  [[nodiscard]] std::size_t count_hits(std::span<const Read> reads) noexcept;

  CacheMap map_;
  RoutedEngineOptions options_;
  SplitSets splits_;
};

}  // namespace lowtide

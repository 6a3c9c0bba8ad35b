// remote_engine.h - for data of which some or all shards are objects on servers.
#pragma once

#include <memory>
#include <string>

#include "engine/block_fetcher.h"
#include "engine/engine.h"
#include "engine/lane.h"

namespace lowtide {

// `objects` reads the shards that are remote. `local` reads the others; nullptr if there are none.
// Claims nothing by itself: `claim` is kept for what the lane holds.
[[nodiscard]] std::unique_ptr<Engine> make_remote_engine(std::shared_ptr<Files> files,
                                                         std::unique_ptr<Lane> objects,
                                                         std::unique_ptr<Engine> local,
                                                         Claim claim);

// Objects with copies on a local disk.
struct Tier {
  std::unique_ptr<TierFolder> folder;
  KeptObjects objects;
  std::shared_ptr<Files>
      copies;  // for each shard, the copy or, if it is not kept, the shard itself
};
// `limit_bytes` as in TierFolder. Throws IoError.
[[nodiscard]] Tier open_tier(const Shards& shards, const std::string& folder,
                             std::uint64_t limit_bytes);
// `source` reads any shard, `copies` reads tier.copies. `claim` is for `buffers` blocks.
[[nodiscard]] std::unique_ptr<Engine> make_tiered_engine(Tier tier, std::unique_ptr<Engine> source,
                                                         std::unique_ptr<Engine> copies,
                                                         Claim claim, std::size_t buffers);

}  // namespace lowtide

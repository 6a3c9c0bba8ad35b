// remote_engine.h - for data of which some or all shards are objects on servers.
#pragma once

#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/lane.h"

namespace lowtide {

// `objects` reads the shards that are remote. `local` reads the others; nullptr if there are none.
// Claims nothing by itself: `claim` is kept for what the lane holds.
[[nodiscard]] std::unique_ptr<Engine> make_remote_engine(std::shared_ptr<Files> files,
                                                         std::unique_ptr<Lane> objects,
                                                         std::unique_ptr<Engine> local,
                                                         Claim claim);

}  // namespace lowtide

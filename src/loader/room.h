// room.h - how a loader spends its share of the budget.
#pragma once

#include <cstdint>
#include <vector>

#include "core/budget.h"
#include "dataset/dataset.h"
#include "loader/schedule.h"
#include "order/order.h"

namespace lowtide {

constexpr std::uint64_t kPieceSamples = 4096;     // in one set of reads, at most
constexpr std::uint64_t kSetBytes = 1024 * 1024;  // of batches in order that are read together
constexpr std::uint64_t kStagedPieces = 4;        // sets in flight from staging

struct Room {
  std::uint64_t buffer_bytes = 0;      // of one batch
  std::uint64_t raw_offset_bytes = 0;  // in it: where samples lie as read, if they are made over
  std::uint64_t piece_samples = 0;     // in one set of reads
  // Batches that are read or ready, beside the one in the consumer's hand: of data on a disk, where
  // the slots of Staging come with them (0: no room, or no use), and of data in memory.
  std::uint64_t ahead = 0;
  std::uint64_t slots = 0;
  std::uint64_t hot_ahead = 0;
  std::uint64_t elastic_bytes = 0;  // what either costs, whichever is more
};

// What a loader cannot do without: the batch in the consumer's hand and one set of reads. Throws
// std::invalid_argument for a batch that no address space holds.
[[nodiscard]] std::vector<Budget::Entry> least_room(const Dataset& dataset,
                                                    const Schedule& schedule);

// Spends most of `free_bytes`, which are left after least_room, on looking ahead: first on enough
// batches to keep an engine busy, the rest on Staging, or, while the data is in memory, on more
// batches that are read together. A part stays free for other loaders of the same array. At most
// `most_ahead` batches ahead, if that is not 0.
[[nodiscard]] Room plan_room(const Dataset& dataset, const Order& order, const Schedule& schedule,
                             std::uint64_t free_bytes, std::uint64_t most_ahead = 0);

}  // namespace lowtide

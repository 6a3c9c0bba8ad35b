// room.h - how a Lookahead spends its share of the budget.
#pragma once

#include <cstdint>
#include <vector>

#include "core/budget.h"
#include "dataset/dataset.h"
#include "loader/schedule.h"
#include "order/order.h"

namespace lowtide {

constexpr std::uint64_t kSetBytes = 1024 * 1024;  // of sequential batches that are read together
constexpr std::uint64_t kFarSetBytes = 16 * 1024 * 1024;  // the same from servers
constexpr std::uint64_t kSetReads = 128;                  // enough reads to be worth handing over
constexpr std::uint64_t kSweepSets = 4;                   // in flight for a sweep

struct Room {
  std::uint64_t raw_offset_bytes = 0;  // in a buffer: where samples as read are, if not delivered
  std::uint64_t set_samples = 0;       // per set of reads
  // Batches that are being read or ready, in addition to the consumer's current one. In the order
  // of turns: `ahead` for data on a disk, `hot_ahead` for data in memory. In file order: `sweep`,
  // or `hot_sweep` for data in memory whose samples are too far apart to merge; 0: there is no room
  // for a sweep, or no use. If batches are not delivered as they are read, those of a sweep are
  // beside `ahead`.
  std::uint64_t ahead = 0;
  std::uint64_t hot_ahead = 0;
  std::uint64_t sweep = 0;
  std::uint64_t hot_sweep = 0;
  std::uint64_t most_batch_bytes = 0;  // of ragged samples as read, if no other batch is held
  std::uint64_t elastic_bytes = 0;     // the cost of the most expensive of them
};

// Rows in the largest batch that this schedule actually has; at least 1.
[[nodiscard]] std::uint64_t batch_rows(const Schedule& schedule);

// The size of the samples of one batch as they are read: of most batches, if samples differ in
// size. Throws std::invalid_argument for a batch that exceeds the address space.
[[nodiscard]] std::uint64_t staged_bytes(const Dataset& dataset, const Schedule& schedule);
// The size of the buffer of one batch that is delivered. Throws as above.
[[nodiscard]] std::uint64_t buffer_bytes(const Dataset& dataset, const Schedule& schedule);

// What a Lookahead needs at least: the consumer's current batch and one set of reads. Throws
// as buffer_bytes().
[[nodiscard]] std::vector<Budget::Entry> least_room(const Dataset& dataset,
                                                    const Schedule& schedule);

// Spends most of `free_bytes`, which are left after least_room, on looking ahead. Enough batches to
// keep an engine busy come first. The rest goes to a sweep. A part stays free for other loaders of
// the same array. Looks at most `most_ahead` batches ahead, if that is not 0. If the data is `far`,
// on a server, more must be in flight.
[[nodiscard]] Room plan_room(const Dataset& dataset, const Order& order, const Schedule& schedule,
                             std::uint64_t free_bytes, std::uint64_t most_ahead = 0,
                             bool far = false);

}  // namespace lowtide

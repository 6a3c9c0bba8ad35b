#include "loader/room.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "core/checked.h"
#include "core/extent.h"
#include "loader/direct.h"
#include "loader/staging.h"

namespace lowtide {
namespace {

// In all batches ahead together: enough to keep a disk busy, with many short or few long reads.
constexpr std::uint64_t kReadsAhead = 512;
constexpr std::uint64_t kBytesAhead = 16 * 1024 * 1024;
constexpr std::uint64_t kMostAhead = 64;
constexpr std::uint64_t kMostSpareBytes = 2 * 1024 * 1024;
constexpr std::uint64_t kLeastAhead = 4;
constexpr std::uint64_t kGroupRows = 64 * 1024;  // sorted together; more gains little
constexpr std::uint64_t kHotSets = 6;  // fewer do not cover the time a thread takes to wake
constexpr std::uint64_t kMostPlannedReads = 64;  // per sample
constexpr std::uint64_t kPartSamples = 512;      // enough reads to be worth handing over
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 31;
constexpr std::uint64_t kMostBufferBytes = std::uint64_t{1} << 62;

// Rows in the largest batch that this schedule actually has.
std::uint64_t batch_rows(const Schedule& schedule) {
  return std::max<std::uint64_t>(1, std::min(schedule.batch_size, schedule.size));
}

// A set with few rows of many parts takes several parts together.
std::uint64_t piece_samples(const Dataset& dataset, const Schedule& schedule) {
  const std::uint64_t rows = std::min(batch_rows(schedule), kPieceSamples);
  return std::max(rows, std::min(kPartSamples, rows * std::min(dataset.parts(), kPartSamples)));
}

// The size of the plan of one sample in a set of reads. Long rows have many reads, but a set has
// only few such rows.
std::uint64_t plan_bytes(const Dataset& dataset) {
  const std::uint64_t reads = std::min(dataset.reads_per_part(), kMostPlannedReads);
  return reads * sizeof(Read) + sizeof(std::uint64_t) + sizeof(std::byte*);
}

// A buffer holds the delivered batch and, if they differ, the samples as read after it.
std::uint64_t raw_offset_bytes(const Dataset& dataset, const Schedule& schedule) {
  return dataset.as_read() ? 0 : round_up(dataset.batch_bytes(batch_rows(schedule)), 64);
}

std::uint64_t buffer_bytes(const Dataset& dataset, const Schedule& schedule) {
  std::uint64_t bytes = 0;
  if (!checked_mul(batch_rows(schedule), dataset.sample_bytes(), &bytes) ||
      bytes > kMostBufferBytes) {
    throw std::invalid_argument("batch_size: " + std::to_string(schedule.batch_size) +
                                " rows exceed the address space; use a smaller batch_size");
  }
  return round_up(std::max<std::uint64_t>(raw_offset_bytes(dataset, schedule) + bytes, 1), 4096);
}

std::uint64_t batch_bytes(const Dataset& dataset, const Schedule& schedule) {
  return buffer_bytes(dataset, schedule) + batch_rows(schedule) * sizeof(std::uint64_t);
}

// Steps that a look-ahead can use. Clamped, because products with a saturated count would overflow.
std::uint64_t steps_ahead(const Schedule& schedule) {
  return std::clamp<std::uint64_t>(schedule.turns(), 1, kMostSteps);
}

// As many slots as fit into `bytes`; 0 if sorting ahead is useless.
std::uint64_t plan_slots(const Dataset& dataset, const Order& order, const Schedule& schedule,
                         std::uint64_t steps, std::uint64_t bytes) {
  const bool unsorted = !order.sequential() || dataset.parts() > 1;
  if (!unsorted || dataset.sample_bytes() == 0) return 0;
  // A place in the window and a sample share one 64-bit key.
  const auto sample_bits = static_cast<unsigned>(std::bit_width(dataset.size()));
  const std::uint64_t most_places = (std::uint64_t{1} << std::min(31U, 64U - sample_bits)) - 1;
  const std::uint64_t slots =
      std::min({bytes / (dataset.sample_bytes() + Staging::kSlotOverheadBytes),
                steps * batch_rows(schedule), most_places});
  return slots < 2 * batch_rows(schedule) ? 0 : slots;
}

}  // namespace

std::vector<Budget::Entry> least_room(const Dataset& dataset, const Schedule& schedule) {
  return {{"a batch of " + std::to_string(batch_rows(schedule)) + " rows",
           batch_bytes(dataset, schedule)},
          {"read plans", piece_samples(dataset, schedule) * plan_bytes(dataset) +
                             batch_rows(schedule) * Direct::kRowOverheadBytes}};
}

Room plan_room(const Dataset& dataset, const Order& order, const Schedule& schedule,
               std::uint64_t free_bytes, std::uint64_t most_ahead) {
  const std::uint64_t rows = batch_rows(schedule);
  const std::uint64_t batch = batch_bytes(dataset, schedule);
  // Other loaders of the same array must find room too.
  const std::uint64_t spare =
      std::max(free_bytes / 8, std::min({4 * batch, free_bytes / 2, kMostSpareBytes}));
  const std::uint64_t elastic = free_bytes - spare;
  Room room;
  room.buffer_bytes = buffer_bytes(dataset, schedule);
  room.raw_offset_bytes = raw_offset_bytes(dataset, schedule);
  room.piece_samples = piece_samples(dataset, schedule);

  const std::uint64_t wanted =
      std::clamp(std::max((kReadsAhead + rows - 1) / rows, (kBytesAhead + batch - 1) / batch),
                 kLeastAhead, kMostAhead);
  const std::uint64_t each = batch + room.piece_samples * plan_bytes(dataset);
  const std::uint64_t affordable = std::max(elastic / (order.sequential() ? 2 : 4) / each,
                                            std::min<std::uint64_t>(elastic / each, 2));
  // No more than the steps that are left: room that a short run cannot use is for other loaders.
  const std::uint64_t cap = most_ahead == 0 ? kMostSteps : most_ahead;
  const std::uint64_t steps = std::min(steps_ahead(schedule), cap);
  room.ahead = std::min({wanted, affordable, steps});
  room.elastic_bytes = room.ahead * each;

  const std::uint64_t staged_samples =
      std::max(room.piece_samples, std::min(kPieceSamples, steps * rows));
  const std::uint64_t plans = kStagedPieces * staged_samples * plan_bytes(dataset);
  const std::uint64_t left = elastic - room.elastic_bytes;
  room.slots = left > plans ? plan_slots(dataset, order, schedule, steps, left - plans) : 0;
  if (room.slots > 0) {
    room.piece_samples = staged_samples;
    room.elastic_bytes +=
        plans + room.slots * (dataset.sample_bytes() + Staging::kSlotOverheadBytes);
  }

  // Small sequential batches are read together, if the plans of longer sets cost little.
  if (order.sequential() && dataset.sample_bytes() > 0) {
    const std::uint64_t set =
        std::min({kSetBytes / dataset.sample_bytes(), kPieceSamples, steps * rows});
    const std::uint64_t more = set > room.piece_samples ? set - room.piece_samples : 0;
    const std::uint64_t extra = more * plan_bytes(dataset) * std::max(room.ahead, kStagedPieces);
    if (extra <= elastic / 16) {
      room.piece_samples += more;
      room.elastic_bytes += extra;
    }
  }

  // Sequential batches are not sorted: enough that threads find work while others wake up, and few
  // enough that the buffers stay in the processor's cache. Otherwise two groups, one of which is
  // read while the other is planned, and one batch that the consumer has.
  const std::uint64_t groups =
      order.sequential()
          ? kHotSets * std::max<std::uint64_t>(
                           1, kSetBytes / std::max<std::uint64_t>(1, rows * dataset.sample_bytes()))
          : 2 * std::max<std::uint64_t>(1, kGroupRows / rows) + 1;
  const std::uint64_t hot_each = batch + rows * Direct::kRowOverheadBytes;
  const std::uint64_t hot_free = elastic > plans ? elastic - plans : 0;
  room.hot_ahead = std::min({groups, kMostAhead, steps + 1, hot_free / hot_each});
  if (room.hot_ahead == 0) room.hot_ahead = std::min(room.ahead, groups);
  room.elastic_bytes =
      std::max(room.elastic_bytes, std::min(elastic, plans + room.hot_ahead * hot_each));
  return room;
}

}  // namespace lowtide

#include "loader/room.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "core/checked.h"
#include "core/extent.h"
#include "engine/engine.h"
#include "loader/sweep.h"

namespace lowtide {
namespace {

// For all batches ahead together: enough to keep a disk busy, with many short or few long reads.
constexpr std::uint64_t kReadsAhead = 512;
constexpr std::uint64_t kBytesAhead = 16 * 1024 * 1024;
constexpr std::uint64_t kFarBytesAhead = 64 * 1024 * 1024;
constexpr std::uint64_t kMostAhead = 64;
constexpr std::uint64_t kLeastAhead = 4;
// What stays free for other loaders of the same array: an eighth up to the first size, at least
// four batches up to the second.
constexpr std::uint64_t kSpareBytes = 16 * 1024 * 1024;
constexpr std::uint64_t kMostSpareBytes = 2 * 1024 * 1024;
constexpr std::uint64_t kGroupRows = 64 * 1024;  // half of the cached rows that pay off unmerged
constexpr std::uint64_t kHotSets = 6;        // fewer do not cover the time a thread takes to wake
constexpr std::uint64_t kSetSamples = 4096;  // the most in one set of reads
constexpr std::uint64_t kFarSets = 32;       // in a sweep over servers
constexpr std::uint64_t kLeastFarSet = 64;   // samples of one of them
constexpr std::uint64_t kMostPlannedReads = 64;  // per sample
constexpr std::uint64_t kPartSamples = 512;      // enough reads to be worth handing over
constexpr std::uint64_t kSetSampleBytes = 3 * sizeof(std::uint64_t);  // bookkeeping, in one set
constexpr std::uint64_t kMostSweep = std::uint64_t{1} << 20;          // batches
constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 31;
// A buffer for ragged data has room for this many times the mean length of its samples, plus the
// longest one.
constexpr std::uint64_t kRaggedShare = 2;
constexpr std::uint64_t kAlignBytes = 64;  // between the arrays in a buffer
constexpr std::uint64_t kMostBufferBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kPageBytes = 4096;

[[noreturn]] void throw_too_large(const Schedule& schedule) {
  throw std::invalid_argument("batch_size: " + std::to_string(schedule.batch_size) +
                              " rows exceed the address space; use a smaller batch_size");
}

// If a batch has few rows of many parts, a set covers several parts, so that it is worth handing
// over.
std::uint64_t set_samples(const Dataset& dataset, const Schedule& schedule) {
  const std::uint64_t rows = std::min(batch_rows(schedule), kSetSamples);
  return std::max(rows, std::min(kPartSamples, rows * std::min(dataset.parts(), kPartSamples)));
}

// The size of the reads of one sample in a set. Long rows have many reads, but a set has only few
// such rows.
std::uint64_t read_bytes(const Dataset& dataset) {
  return std::min(dataset.reads_per_part(), kMostPlannedReads) * sizeof(Read);
}

// A buffer holds the delivered batch and, if they differ, the samples as read after it. Only
// samples of equal size are read there; the others fly in buffers of their own.
std::uint64_t raw_offset_bytes(const Dataset& dataset, const Schedule& schedule) {
  return dataset.as_read() ? 0 : round_up(dataset.batch_bytes(batch_rows(schedule)), kAlignBytes);
}

bool stages_ragged(const Dataset& dataset) {
  return dataset.ragged() && !dataset.as_read();
}

std::uint64_t batch_bytes(const Dataset& dataset, const Schedule& schedule) {
  const std::uint64_t numbers = dataset.sources() > 1 ? 2 : 1;  // a mixture also records the source
  return buffer_bytes(dataset, schedule) + batch_rows(schedule) * numbers * sizeof(std::uint64_t);
}

// Steps that a look-ahead can use. Clamped, because products with a saturated count would overflow.
std::uint64_t steps_ahead(const Schedule& schedule) {
  return std::clamp<std::uint64_t>(schedule.turns(), 1, kMostSteps);
}

// How many batches are in flight in one sweep, of as many as there is room for; 0 if sorting is
// useless.
std::uint64_t plan_sweep(const Dataset& dataset, const Order& order, std::uint64_t rows,
                         std::uint64_t batches) {
  const bool sorts = !order.sequential() || dataset.parts() > 1;
  if (dataset.ragged()) {
    batches = std::max<std::uint64_t>(batches, 1);  // only a sweep reads them
  } else if (!sorts || dataset.sample_bytes() == 0 || batches < 2) {
    return 0;
  }
  batches = std::min(batches, kMostSweep);
  return SweepPlanner::can_sort(dataset, rows, batches) ? batches : 0;
}

// How many cached batches ahead pay off if they are not merged. Sequential ones: enough that
// threads find work while others wake up, and few enough that the buffers stay in the processor's
// cache. Sorted ones: more samples gain little, and one batch is the consumer's.
std::uint64_t plan_hot(const Dataset& dataset, const Order& order, std::uint64_t rows) {
  if (order.sequential()) {
    const std::uint64_t bytes = std::max<std::uint64_t>(1, rows * dataset.sample_bytes());
    return std::min(kMostAhead, kHotSets * std::max<std::uint64_t>(1, kSetBytes / bytes));
  }
  return std::min(kMostAhead, 2 * std::max<std::uint64_t>(1, kGroupRows / rows) + 1);
}

}  // namespace

std::uint64_t batch_rows(const Schedule& schedule) {
  return std::max<std::uint64_t>(1, std::min(schedule.batch_size, schedule.size));
}

std::uint64_t staged_bytes(const Dataset& dataset, const Schedule& schedule) {
  std::uint64_t bytes = 0;
  if (!checked_mul(batch_rows(schedule), dataset.sample_bytes(), &bytes) ||
      bytes > kMostBufferBytes) {
    throw_too_large(schedule);
  }
  if (!dataset.ragged()) return bytes;
  // What most batches need. A longer one gets a buffer of its own while no other batch is held.
  const std::uint64_t mean = dataset.data_bytes() / std::max<std::uint64_t>(dataset.size(), 1) + 1;
  const std::uint64_t usual = dataset.sample_bytes() + kRaggedShare * batch_rows(schedule) * mean;
  return round_up(std::min(bytes, usual) + dataset.fields() * kAlignBytes, kPageBytes);
}

std::uint64_t buffer_bytes(const Dataset& dataset, const Schedule& schedule) {
  std::uint64_t bytes = staged_bytes(dataset, schedule);
  if (!dataset.as_read()) {
    const std::uint64_t delivered = raw_offset_bytes(dataset, schedule);
    if (delivered > kMostBufferBytes) throw_too_large(schedule);
    bytes = stages_ragged(dataset) ? delivered : delivered + bytes;
  } else if (!dataset.ragged()) {
    bytes = dataset.batch_bytes(batch_rows(schedule));
  }
  return round_up(std::max<std::uint64_t>(bytes, 1), kPageBytes);
}

std::vector<Budget::Entry> least_room(const Dataset& dataset, const Schedule& schedule) {
  const std::uint64_t rows = batch_rows(schedule);
  std::vector<Budget::Entry> least = {
      {"a batch of " + std::to_string(rows) + " rows", batch_bytes(dataset, schedule)},
      {"read plans", set_samples(dataset, schedule) * (read_bytes(dataset) + kSetSampleBytes) +
                         rows * sizeof(std::byte*)}};
  if (stages_ragged(dataset)) {
    least.push_back({"its rows as they are stored", staged_bytes(dataset, schedule)});
  }
  return least;
}

Room plan_room(const Dataset& dataset, const Order& order, const Schedule& schedule,
               std::uint64_t free_bytes, std::uint64_t most_ahead, bool far) {
  const std::uint64_t rows = batch_rows(schedule);
  const std::uint64_t batch = batch_bytes(dataset, schedule);
  const std::uint64_t spare = std::max(std::min(free_bytes / 8, kSpareBytes),
                                       std::min({4 * batch, free_bytes / 2, kMostSpareBytes}));
  const std::uint64_t elastic = free_bytes - spare;
  Room room;
  room.raw_offset_bytes = raw_offset_bytes(dataset, schedule);
  room.set_samples = set_samples(dataset, schedule);

  const std::uint64_t bytes_ahead = far ? kFarBytesAhead : kBytesAhead;
  const std::uint64_t wanted =
      std::clamp(std::max((kReadsAhead + rows - 1) / rows, (bytes_ahead + batch - 1) / batch),
                 kLeastAhead, kMostAhead);
  const std::uint64_t each = batch + room.set_samples * read_bytes(dataset);
  const std::uint64_t affordable = std::max(elastic / (order.sequential() ? 2 : 4) / each,
                                            std::min<std::uint64_t>(elastic / each, 2));
  // No more than the remaining steps: memory that a short run cannot use is left to other loaders.
  const std::uint64_t cap = most_ahead == 0 ? kMostSteps : most_ahead;
  const std::uint64_t steps = std::min(steps_ahead(schedule), cap);
  room.ahead = std::min({wanted, affordable, steps});
  room.elastic_bytes = room.ahead * each;

  const std::uint64_t sweep_read_bytes = kSweepSets * (read_bytes(dataset) + sizeof(std::uint32_t));
  const std::uint64_t flight =
      (dataset.as_read() ? batch : staged_bytes(dataset, schedule)) + rows * Bins::kSampleBytes;
  std::uint64_t sweep_samples = std::min(kSetSamples, steps * rows);
  // Servers get many small sets per sweep, most of which wait until more samples can join them.
  if (far) {
    sweep_samples =
        std::min(sweep_samples, std::max(kLeastFarSet, elastic / flight * rows / kFarSets));
  }
  // In a small budget, long plans would take the memory that an unusually long batch needs.
  if (dataset.ragged()) {
    sweep_samples = std::min(sweep_samples, elastic / 4 / (sweep_read_bytes + kSetSampleBytes));
  }
  sweep_samples = std::max(room.set_samples, sweep_samples);
  const std::uint64_t plans =
      sweep_samples * sweep_read_bytes + (sweep_samples - room.set_samples) * kSetSampleBytes;
  const std::uint64_t beside = plans + (dataset.as_read() ? 0 : room.elastic_bytes);
  const std::uint64_t fit = (elastic - std::min(elastic, beside)) / flight;
  // One fewer than fit: when a batch is delivered, the consumer briefly holds two.
  room.sweep =
      plan_sweep(dataset, order, rows, std::min(fit - std::min<std::uint64_t>(fit, 1), steps));
  room.most_batch_bytes = staged_bytes(dataset, schedule) + fit * flight;
  if (room.sweep > 0) {
    room.set_samples = sweep_samples;
    room.elastic_bytes =
        std::max(room.elastic_bytes, std::min(elastic, beside + (room.sweep + 1) * flight));
  }

  // Small sequential batches are read together, if the plans of longer sets cost little.
  if (order.sequential() && dataset.sample_bytes() > 0) {
    const std::uint64_t set_bytes = far ? kFarSetBytes : kSetBytes;
    const std::uint64_t set =
        std::min({set_bytes / dataset.sample_bytes(), kSetSamples, steps * rows});
    const std::uint64_t more = set > room.set_samples ? set - room.set_samples : 0;
    const std::uint64_t extra =
        more * (read_bytes(dataset) * std::max(room.ahead, kSweepSets) + kSetSampleBytes);
    if (extra <= elastic / 16) {
      room.set_samples += more;
      room.elastic_bytes += extra;
    }
  }

  const std::uint64_t hot = plan_hot(dataset, order, rows);
  room.hot_ahead = std::min({hot, elastic / batch, steps + 1});
  if (room.hot_ahead == 0) room.hot_ahead = std::min(room.ahead, hot);
  room.elastic_bytes = std::max(room.elastic_bytes, std::min(elastic, room.hot_ahead * batch));
  room.hot_sweep = std::min(room.sweep, std::max<std::uint64_t>(2, hot - 1));
  // A set has at most Engine::kMaxReads.
  room.set_samples =
      std::min<std::uint64_t>(room.set_samples, Engine::kMaxReads / dataset.reads_per_part());
  return room;
}

}  // namespace lowtide

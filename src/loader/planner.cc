#include "loader/planner.h"

#include <numeric>
#include <span>
#include <stdexcept>

#include "engine/outcome.h"

namespace lowtide {

double PlanContext::merge_share() const {
  const double distance = static_cast<double>(dataset.data_bytes()) /
                          static_cast<double>(room.sweep * batch_rows(schedule));
  const std::uint32_t gap_bytes =
      prospect.resident ? prospect.cached_distance_bytes : prospect.gap_bytes;
  return static_cast<double>(gap_bytes) / distance;
}

Batch PlanContext::make_batch(std::uint64_t turn, bool prefault) const {
  Batch batch = pool.take(prefault);
  Buffer& buffer = Buffer::of(batch);
  const Schedule::Turn at = schedule.at(turn);
  buffer.step = at.step;
  buffer.epoch = at.epoch;
  buffer.rows = schedule.count(turn);
  buffer.samples.resize(buffer.rows);
  schedule.fill(order, turn, dataset.size(), buffer.samples);
  buffer.offsets.assign(dataset.tables() * (buffer.rows + 1), 0);
  for (std::uint32_t table = 0; table < dataset.tables(); ++table) {
    const auto ends = std::span(buffer.offsets).subspan(table * (buffer.rows + 1) + 1, buffer.rows);
    dataset.lengths(table, buffer.samples, ends);
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
  }
  if (dataset.as_read()) dataset.describe(buffer.rows, buffer.offsets, {}, &buffer.columns);
  return batch;
}

void PlanContext::deliver(const Batch& batch, std::uint64_t turn,
                          std::span<const std::byte* const> staged) const {
  const Buffer& buffer = Buffer::of(batch);
  try {
    dataset.deliver(buffer.samples, staged, buffer.memory.data());
  } catch (const std::invalid_argument& misfit) {
    throw std::invalid_argument(std::string(misfit.what()) + " (" + step_text(turn) + ")");
  }
}

std::exception_ptr PlanContext::failure(const LoaderSet& set, std::uint64_t turn) const noexcept {
  try {
    const Read& read = set.storage[set.outcome.read];
    throw_outcome(set.outcome, read, dataset.path(read.from.shard), step_text(turn));
  } catch (...) {
    return std::current_exception();
  }
}

std::string PlanContext::step_text(std::uint64_t turn) const {
  const Schedule::Turn at = schedule.at(turn);
  return "epoch " + std::to_string(at.epoch) + ", step " + std::to_string(at.step);
}

}  // namespace lowtide

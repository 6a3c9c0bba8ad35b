#include "loader/planner.h"

#include <numeric>
#include <span>
#include <stdexcept>

#include "engine/outcome.h"
#include "lowtide/error.h"

namespace lowtide {

double PlanContext::merge_share() const {
  const double distance = static_cast<double>(dataset.data_bytes()) /
                          static_cast<double>(room.sweep * batch_rows(schedule));
  const std::uint32_t gap_bytes =
      prospect.resident ? prospect.cached_distance_bytes : prospect.gap_bytes;
  return static_cast<double>(gap_bytes) / distance;
}

Batch PlanContext::with_samples(Batch batch, std::uint64_t turn) const {
  Buffer& buffer = Buffer::of(batch);
  const Schedule::Turn at = schedule.at(turn);
  buffer.step = at.step;
  buffer.epoch = at.epoch;
  buffer.rows = schedule.count(turn);
  buffer.samples.resize(buffer.rows);
  schedule.fill(order, turn, dataset.size(), buffer.samples);
  buffer.offsets.clear();
  return batch;
}

Batch PlanContext::make_batch(std::uint64_t turn, bool prefault) const {
  if (dataset.as_read()) return make_batch(pool, turn, prefault);
  return with_samples(pool.take(prefault), turn);
}

Batch PlanContext::make_batch(Pool& from, std::uint64_t turn, bool prefault) const {
  Batch batch = with_samples(from.take(prefault), turn);
  Buffer& buffer = Buffer::of(batch);
  buffer.offsets.assign(dataset.tables() * (buffer.rows + 1), 0);
  for (std::uint32_t table = 0; table < dataset.tables(); ++table) {
    const auto ends = std::span(buffer.offsets).subspan(table * (buffer.rows + 1) + 1, buffer.rows);
    dataset.lengths(table, buffer.samples, ends);
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
  }
  dataset.read_columns(buffer.rows, buffer.offsets, &buffer.columns);
  return batch;
}

ReadSamples PlanContext::read_into(const Batch& batch) {
  const Buffer& buffer = Buffer::of(batch);
  return {.samples = buffer.samples,
          .bytes = buffer.memory.data(),
          .columns = buffer.columns,
          .offsets = buffer.offsets};
}

void PlanContext::deliver(const Batch& batch, std::uint64_t turn, const ReadSamples& read) const {
  try {
    dataset.deliver(read, Buffer::of(batch).memory.data());
  } catch (const std::invalid_argument& misfit) {
    throw std::invalid_argument(std::string(misfit.what()) + " (" + step_text(turn) + ")");
  } catch (const FormatError& wrong) {
    throw FormatError(std::string(wrong.what()) + " (" + step_text(turn) + ")");
  }
}

void PlanContext::check(const Batch& batch, std::uint64_t turn) const {
  try {
    dataset.check(read_into(batch));
  } catch (const FormatError& wrong) {
    throw FormatError(std::string(wrong.what()) + " (" + step_text(turn) + ")");
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

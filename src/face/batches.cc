#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "face/array_impl.h"
#include "face/run.h"
#include "lowtide/array.h"
#include "order/order.h"

namespace lowtide {

namespace {

Schedule schedule_of(const BatchOptions& options, std::uint64_t rows) {
  if (options.order == OrderKind::random) {
    throw std::invalid_argument(
        "order: rows come in the order \"shuffle\" or \"sequential\", not \"random\"");
  }
  const auto listed = [](const auto& list) { return std::uint64_t{list.size()}; };
  Schedule schedule{.size = options.rows ? std::visit(listed, *options.rows) : rows,
                    .epoch = options.epoch,
                    .batch_size = options.batch_size,
                    .rank = options.rank,
                    .world_size = options.world_size,
                    .drop_last = options.drop_last};
  check_shares(schedule);
  if (schedule.drop_last && schedule.size > 0 && schedule.steps_in_epoch() == 0) {
    throw std::invalid_argument(
        "drop_last leaves no batch: one step needs batch_size * world_size = " +
        std::to_string(schedule.batch_size) + " * " + std::to_string(schedule.world_size) +
        " rows, but there are " + std::to_string(schedule.size));
  }
  return schedule;
}

RunInputs inputs_of(const std::shared_ptr<const Rows>& rows, std::shared_ptr<StoreHolder> holder,
                    const BatchOptions& options) {
  const std::uint64_t size = rows->size();
  std::vector<Budget::Entry> holds;
  if (options.rows && options.claim_rows) {
    const auto bytes = [](const auto& list) { return std::uint64_t{list.size_bytes()}; };
    holds.push_back({.what = "order", .bytes = std::visit(bytes, *options.rows)});
  }
  return {.dataset = rows,
          .holder = std::move(holder),
          .make_order = [size, options]() -> std::unique_ptr<Order> {
            if (options.rows) return make_explicit(*options.rows, size);
            if (options.order == OrderKind::shuffle) return make_shuffle(size, options.seed);
            return make_sequential(size);
          },
          .holds = std::move(holds)};
}

}  // namespace

Batches::Batches(std::unique_ptr<Run> run) : run_(std::move(run)) {}
Batches::Batches(Batches&&) noexcept = default;
Batches& Batches::operator=(Batches&&) noexcept = default;
Batches::~Batches() = default;

Batch Batches::next() {
  return run_->next();
}
std::optional<Batch> Batches::next_for(std::chrono::milliseconds timeout) {
  return run_->next_for(timeout);
}
std::uint64_t Batches::steps() const {
  return run_->turns();
}
std::uint64_t Batches::position() const {
  return run_->turn();
}

void Batches::seek(std::uint64_t step) {
  if (step > run_->turns()) {
    throw std::out_of_range("seek: step " + std::to_string(step) + " is beyond the " +
                            std::to_string(run_->turns()) + " steps of the epoch");
  }
  run_->restart(run_->schedule(), step);
}

void Batches::cancel() noexcept {
  run_->cancel();
}

Batches Array::batches(const BatchOptions& options) const {
  return Batches(std::make_unique<Run>(inputs_of(impl_->rows, impl_->holder, options),
                                       schedule_of(options, impl_->rows->size())));
}

}  // namespace lowtide

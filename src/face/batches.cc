#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/hash.h"
#include "face/array_impl.h"
#include "face/run.h"
#include "lowtide/array.h"
#include "order/order.h"

namespace lowtide {

namespace {

Schedule schedule_of(const BatchOptions& options, std::uint64_t rows) {
  if (options.order == OrderKind::random) {
    throw std::invalid_argument(
        "order of rows must be \"shuffle\" or \"sequential\", not \"random\"");
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
        " rows, but there are " + std::to_string(schedule.size) + "; leave drop_last out");
  }
  return schedule;
}

std::uint64_t hash_of(const RowList& list, std::uint64_t hash) {
  return std::visit(
      [hash](const auto& rows) {
        std::uint64_t all = hash_with(hash, rows.size());
        for (const auto row : rows) all = hash_with(all, static_cast<std::uint64_t>(row));
        return all;
      },
      list);
}

RunInputs inputs_of(const std::shared_ptr<Array::Impl>& array, const BatchOptions& options) {
  const std::uint64_t size = array->rows->size();
  std::vector<Budget::Entry> holds;
  if (options.rows && options.claim_rows) {
    const auto bytes = [](const auto& list) { return std::uint64_t{list.size_bytes()}; };
    holds.push_back({.what = "order", .bytes = std::visit(bytes, *options.rows)});
  }
  return {.dataset = array->rows,
          .holder = array->holder,
          .make_order = [size, options]() -> std::unique_ptr<Order> {
            if (options.rows) return make_explicit(*options.rows, size);
            if (options.order == OrderKind::shuffle) return make_shuffle(size, options.seed);
            return make_sequential(size);
          },
          .fingerprint =
              [array, options] {
                const std::uint64_t data = array->fingerprint();
                return options.rows ? hash_of(*options.rows, data) : data;
              },
          .like = {.order = options.rows ? "rows" : std::string(order_word(options.order)),
                   .seed = options.seed},
          .one_epoch = true,
          .holds = std::move(holds),
          .beside_bytes = options.beside_bytes};
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
  return run_->schedule().steps_in_epoch();
}
std::uint64_t Batches::epoch() const {
  return run_->schedule().epoch;
}
std::uint64_t Batches::position() const {
  return run_->now().step;
}

void Batches::seek(std::uint64_t step) {
  if (step > steps()) {
    throw std::out_of_range("seek: step " + std::to_string(step) + " is beyond the " +
                            std::to_string(steps()) + " steps of the epoch");
  }
  run_->seek(step, epoch());
}

State Batches::state() const {
  return run_->state();
}

void Batches::restore(const State& state) {
  State here = state;
  const std::uint64_t each = run_->schedule().positions_per_step();
  here.step = state.position / each + (state.position % each == 0 ? 0 : 1);
  run_->restore(here);
}

void Batches::cancel() noexcept {
  run_->cancel();
}

Batches Array::batches(const BatchOptions& options) const {
  return Batches(
      std::make_unique<Run>(inputs_of(impl_, options), schedule_of(options, impl_->rows->size())));
}

}  // namespace lowtide

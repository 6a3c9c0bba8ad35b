#include "loader/lookahead.h"

#include <algorithm>
#include <utility>

#include "loader/room.h"
#include "os/quiet_thread.h"

namespace lowtide {

Lookahead::Lookahead(const LookaheadInputs& inputs, const Schedule& schedule,
                     std::uint64_t first_turn, std::uint64_t most_ahead)
    : in_(inputs),
      schedule_(schedule),
      first_turn_(first_turn),
      most_ahead_(most_ahead),
      claims_(in_.budget.claim_all(least_room(in_.dataset, schedule_))),
      pool_(make_pool()),
      queue_(schedule_.turns() - std::min(first_turn, schedule_.turns())) {}

// The planner ends first: until then, its reads write into the buffers. The share ends before the
// buffers are given away, because its owner could no longer give them back.
Lookahead::~Lookahead() {
  cancel();
  if (planner_.joinable()) planner_.join();
  share_.reset();
  if (in_.spare != nullptr) {
    in_.spare->give(pool_);
  } else {
    pool_->keep(0);  // batches that the user still holds must not keep the spare buffers alive
  }
}

// Spare buffers of the last run already have their pages. Those of new buffers must be faulted in,
// which costs a good part of what the reads cost.
std::shared_ptr<Pool> Lookahead::make_pool() const {
  const std::uint64_t bytes = buffer_bytes(in_.dataset, schedule_);
  if (in_.spare != nullptr) return in_.spare->take(bytes, batch_rows(schedule_), in_.device);
  return std::make_shared<Pool>(bytes, batch_rows(schedule_), 1, in_.device);
}

std::optional<Batch> Lookahead::next(std::chrono::milliseconds timeout) {
  // Started late, so that an iterator that is made and never used costs no thread and no reads.
  if (!planner_.joinable() && !queue_.over()) start();
  std::optional<Batch> batch = queue_.next(timeout);
  if (batch && *batch) {
    // The rest is cheap and concerns this batch alone, so the consumer's thread does it and the
    // planner can go on with later batches.
    Buffer& buffer = Buffer::of(*batch);
    if (!in_.dataset.as_read()) {
      in_.dataset.describe(buffer.rows, buffer.memory.bytes(), &buffer.columns);
    }
    in_.dataset.number(buffer.samples, &buffer.sources);
    pool_->deliver(*batch);
  }
  return batch;
}

void Lookahead::start() {
  // Before the share has bytes: from then on, a claim may ask for them, and must wait for the
  // planner instead of finding that there is none.
  queue_.begin();
  try {
    share_ = std::make_unique<Share>(
        in_.budget, "batches ahead",
        [this](Share&, std::uint64_t most_bytes) { queue_.ask_back(most_bytes); });
    share_->ask_for_part();
    loop_ = std::make_unique<PlanLoop>(in_, schedule_, first_turn_, most_ahead_, *pool_, queue_,
                                       *share_);
    planner_ = start_thread("the thread that reads ahead", [this] { loop_->run(); });
  } catch (...) {
    queue_.end();  // a claim on another thread may be waiting for this queue to give memory back
    share_.reset();
    loop_.reset();
    throw;
  }
  const std::uint64_t turns = schedule_.turns() - first_turn_;
  // Holding the data in memory pays off only if this run reads most of it.
  if (turns > 1 && turns > in_.dataset.size() / schedule_.batch_size / 2) in_.engine.expect_all();
}

}  // namespace lowtide

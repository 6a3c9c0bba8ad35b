#include "loader/lookahead.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "loader/lookahead_parts.h"

namespace lowtide {

Lookahead::Lookahead(const LookaheadInputs& inputs, const Schedule& schedule,
                     std::uint64_t first_step, std::uint64_t most_ahead)
    : in_(inputs),
      schedule_(schedule),
      first_step_(first_step),
      last_step_(schedule.turns()),
      direct_(inputs.dataset, inputs.order),
      next_plan_step_(first_step),
      next_step_(first_step) {
  claims_ = in_.budget.claim_all(least_room(in_.dataset, schedule_));
  const Room room = claim_room(most_ahead);
  ahead_ = room.ahead;
  hot_ahead_ = room.hot_ahead;
  slots_ = static_cast<std::uint32_t>(room.slots);
  raw_offset_bytes_ = room.raw_offset_bytes;
  piece_samples_ =
      std::min<std::uint64_t>(room.piece_samples, Engine::kMaxReads / in_.dataset.reads_per_part());
  pool_ = std::make_shared<Pool>(room.buffer_bytes, std::min(schedule_.batch_size, schedule_.size),
                                 ahead_ + 1);
  const std::uint64_t steps_left = last_step_ - std::min(first_step, last_step_);
  const bool most = steps_left > in_.dataset.size() / schedule_.batch_size / 2;
  if (steps_left > 1 && most) in_.engine.expect_all();
  for (std::size_t i = 0; i < std::max<std::size_t>(ahead_, kStagedPieces); ++i) {
    pieces_.push_back(std::make_unique<Piece>());
    pieces_.back()->loader = this;
  }
  planner_ = std::thread([this] { run(); });
}

Room Lookahead::claim_room(std::uint64_t most_ahead) {
  for (;;) {
    const Room room =
        plan_room(in_.dataset, in_.order, schedule_, in_.budget.free_bytes(), most_ahead);
    if (room.elastic_bytes == 0) return room;
    try {
      claims_.push_back(in_.budget.claim(room.elastic_bytes, "batches ahead"));
      return room;
    } catch (const std::invalid_argument&) {
      // Another loader was faster: what it left is measured again.
    }
  }
}

Lookahead::~Lookahead() {
  cancel();
  planner_.join();
  std::unique_lock lock(mutex_);
  for (const auto& piece : pieces_) piece->cancel();
  planner_wakes_.wait(lock, [&] {
    return std::none_of(pieces_.begin(), pieces_.end(),
                        [](const auto& piece) { return piece->flying; });
  });
  pool_->keep(0);  // batches that are kept must not keep the rest of it
}

void Lookahead::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  planner_wakes_.notify_all();
  consumer_wakes_.notify_all();
}

std::optional<Lease> Lookahead::next(std::chrono::milliseconds timeout, bool* timed_out) {
  std::unique_lock lock(mutex_);
  *timed_out = false;
  const auto ready = [&] {
    return stopping_ || error_ || next_step_ >= last_step_ ||
           (!coming_.empty() && coming_.front()->ready());
  };
  if (!ready()) {
    waiting_ = true;
    planner_wakes_.notify_one();
    const bool in_time = consumer_wakes_.wait_for(lock, timeout, ready);
    waiting_ = false;
    if (!in_time) {
      *timed_out = true;
      return std::nullopt;
    }
  }
  if (stopping_ || next_step_ >= last_step_) return std::nullopt;
  const bool have = !coming_.empty() && coming_.front()->ready();
  if (error_ && !have) std::rethrow_exception(error_);
  Lease lease = std::move(coming_.front()->lease);
  coming_.pop_front();
  ++next_step_;
  const bool planner_waits_for_this = coming_.size() <= wake_at_;
  lock.unlock();
  if (planner_waits_for_this) planner_wakes_.notify_one();
  lease.deliver();
  return lease;
}

void Lookahead::run() {
  std::unique_lock lock(mutex_);
  try {
    while (!stopping_ && !error_) {
      lock.unlock();
      const Prospect prospect = in_.engine.prospect();  // may ask the kernel about many files
      lock.lock();
      prospect_ = prospect;
      if (stopping_ || error_) break;
      if (!advance(lock)) planner_wakes_.wait(lock);
    }
  } catch (const std::invalid_argument& misfit) {
    fail(lock, std::make_exception_ptr(std::invalid_argument(std::string(misfit.what()) + " (" +
                                                             step_text(making_step_) + ")")));
  } catch (...) {
    fail(lock, std::current_exception());
  }
}

void Lookahead::fail(std::unique_lock<std::mutex>& lock, std::exception_ptr error) {
  if (!lock.owns_lock()) lock.lock();
  if (!error_) error_ = std::move(error);
  consumer_wakes_.notify_all();
}

// Does one thing that can be done now, in the order of urgency; false: there is nothing to do until
// something changes.
bool Lookahead::advance(std::unique_lock<std::mutex>& lock) {
  wake_at_ = 0;
  if (finish(lock)) return true;
  if (gather(lock)) return true;
  if (read_window(lock)) return true;
  const bool window_landed =
      !reading_.empty() && reading_.landed == reading_.samples * in_.dataset.parts();
  if (window_landed && delivering_.next_step == delivering_.last_step) {
    std::swap(delivering_, reading_);
    reading_.last_step = reading_.first_step;
    return true;
  }
  if (!reading_.empty()) return false;
  if (direct_.exhausted() && next_plan_step_ < last_step_ && staging_pays()) {
    return plan_window(lock);
  }
  const bool between = delivering_.next_step == delivering_.last_step;
  return between && read_direct(lock);
}

// Nothing to do until the consumer has taken all but so many batches: it need not wake the planner
// before.
bool Lookahead::wait_until_left(std::size_t batches) {
  wake_at_ = std::max(wake_at_, batches);
  return false;
}

std::unique_ptr<Lookahead::Coming> Lookahead::make_batch(std::uint64_t step) {
  auto batch = std::make_unique<Coming>();
  const Schedule::Turn turn = schedule_.at(step);
  batch->lease = pool_->take();
  batch->step = step;
  batch->lease.step = turn.step;
  batch->lease.epoch = turn.epoch;
  batch->lease->samples.resize(schedule_.count(step));
  schedule_.fill(in_.order, step, in_.dataset.size(), batch->lease->samples);
  return batch;
}

// Makes the next batch of samples that have come as they were stored.
bool Lookahead::finish(std::unique_lock<std::mutex>& lock) {
  const auto next = std::find_if(coming_.begin(), coming_.end(),
                                 [](const auto& batch) { return batch->landed() && !batch->made; });
  if (next == coming_.end()) return false;
  Coming& batch = **next;  // stays where it is: the consumer takes only what is made
  lock.unlock();
  const std::byte* const raw = batch.lease->memory.data() + raw_offset_bytes_;
  staged_.clear();
  for (std::size_t i = 0; i < batch.lease->samples.size(); ++i) {
    staged_.push_back(raw + i * in_.dataset.sample_bytes());
  }
  making_step_ = batch.step;
  in_.dataset.deliver(batch.lease->samples, staged_, batch.lease->memory.data());
  lock.lock();
  batch.made = true;
  consumer_wakes_.notify_one();
  return true;
}

}  // namespace lowtide

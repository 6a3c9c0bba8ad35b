#include "loader/lookahead.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "loader/lookahead_parts.h"
#include "os/quiet_thread.h"

namespace lowtide {

Lookahead::Lookahead(const LookaheadInputs& inputs, const Schedule& schedule,
                     std::uint64_t first_step, std::uint64_t most_ahead)
    : in_(inputs),
      schedule_(schedule),
      last_step_(schedule.turns()),
      most_ahead_(most_ahead),
      first_step_(first_step),
      next_plan_step_(first_step),
      next_step_(first_step) {
  share_.emplace(in_.budget, "batches ahead",
                 [this](Share&, std::uint64_t most_bytes) { give_back(most_bytes); });
  try {
    start();
  } catch (...) {
    // A claim on another thread may be inside give_back(), which uses the members: it is let out,
    // and the share, whose destructor waits for it, goes before them.
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      given_back_.notify_all();
    }
    share_.reset();
    throw;
  }
}

void Lookahead::start() {
  claims_ = in_.budget.claim_all(least_room(in_.dataset, schedule_));
  share_->ask_for_part();
  const Room least = plan_room(in_.dataset, in_.order, schedule_, 0, most_ahead_);
  raw_offset_bytes_ = least.raw_offset_bytes;
  pool_ =
      std::make_shared<Pool>(least.buffer_bytes, std::min(schedule_.batch_size, schedule_.size), 1);
  direct_.emplace(in_.dataset, in_.order);
  {
    const std::lock_guard lock(mutex_);
    // If a claim on another thread takes the room first, grow() tries again later.
    if (!fit(share_->most_bytes())) (void)fit(0);
  }
  const std::uint64_t steps_left = last_step_ - std::min(first_step_, last_step_);
  // Holding the data in memory pays off only if this run reads most of it.
  const bool most = steps_left > in_.dataset.size() / schedule_.batch_size / 2;
  if (steps_left > 1 && most) in_.engine.expect_all();
  planner_ = start_thread("the thread that reads ahead", [this] { run(); });
}

// Takes a share of at most this many bytes and looks ahead as far as it allows. False: the share
// was refused, and nothing changed.
bool Lookahead::fit(std::uint64_t most_bytes) {
  const Room room = plan_room(in_.dataset, in_.order, schedule_, most_bytes, most_ahead_);
  if (!share_->resize(room.elastic_bytes)) return false;
  share_bytes_ = room.elastic_bytes;
  ahead_ = room.ahead;
  hot_ahead_ = room.hot_ahead;
  slots_ = static_cast<std::uint32_t>(room.slots);
  piece_samples_ =
      std::min<std::uint64_t>(room.piece_samples, Engine::kMaxReads / in_.dataset.reads_per_part());
  pool_->keep(ahead_ + 1);
  while (pieces_.size() < std::max<std::size_t>(ahead_, kStagedPieces)) {
    pieces_.push_back(std::make_unique<Piece>());
    pieces_.back()->loader = this;
  }
  return true;
}

// Other loaders may have ended. Less than twice the share is not worth a new set of slots.
void Lookahead::grow() {
  const std::uint64_t most_bytes = share_->most_bytes();
  if (most_bytes / 2 < std::max<std::uint64_t>(1, share_bytes_)) return;
  const Room room = plan_room(in_.dataset, in_.order, schedule_, most_bytes, most_ahead_);
  if (room.elastic_bytes / 2 >= std::max<std::uint64_t>(1, share_bytes_)) (void)fit(most_bytes);
}

// Waits for the planner, because only the planner knows when no read writes into the buffers.
void Lookahead::give_back(std::uint64_t most_bytes) {
  std::unique_lock lock(mutex_);
  give_back_to_ = most_bytes;
  start_over_ = true;
  cancel_reads();
  planner_wakes_.notify_all();
  given_back_.wait(lock, [&] { return ended_ || !give_back_to_; });
}

void Lookahead::cancel_reads() {
  for (const auto& piece : pieces_) piece->cancel();
}

// Requires that no reads are in flight.
void Lookahead::drop() {
  coming_.clear();
  pieces_.clear();
  staging_.reset();
  delivering_ = {};
  reading_ = {};
  direct_.emplace(in_.dataset, in_.order);
  pool_->keep(1);
  error_ = nullptr;
  error_told_ = false;
  first_step_ = group_step_ = next_plan_step_ = next_step_;
  window_steps_ = group_steps_ = 1;
}

Lookahead::~Lookahead() {
  cancel();
  planner_.join();
  share_.reset();
  pool_->keep(0);  // batches that the user keeps must not keep the spare buffers
}

void Lookahead::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  planner_wakes_.notify_all();
  consumer_wakes_.notify_all();
}

std::optional<Batch> Lookahead::next(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (std::exchange(error_told_, false)) {
    error_ = nullptr;
    start_over_ = true;
    cancel_reads();
  }
  const auto ready = [&] {
    return stopping_ || error_ || next_step_ >= last_step_ ||
           (!coming_.empty() && coming_.front()->ready());
  };
  if (!ready()) {
    waiting_ = true;
    planner_wakes_.notify_one();
    const bool in_time = consumer_wakes_.wait_for(lock, timeout, ready);
    waiting_ = false;
    if (!in_time) return std::nullopt;
  }
  if (stopping_ || next_step_ >= last_step_) return Batch();
  const bool have = !coming_.empty() && coming_.front()->ready();
  if (error_ && !have) {  // batches that were read before the error are delivered first
    error_told_ = true;
    std::rethrow_exception(error_);
  }
  Batch batch = std::move(coming_.front()->batch);
  coming_.pop_front();
  ++next_step_;
  const bool planner_waits_for_this = coming_.size() <= wake_at_;  // each wake is a futex call
  lock.unlock();
  if (planner_waits_for_this) planner_wakes_.notify_one();
  Buffer& buffer = Buffer::of(batch);
  in_.dataset.describe(buffer.rows, buffer.memory.data(), &buffer.columns);
  pool_->deliver(batch);
  return batch;
}

void Lookahead::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    try {
      work(lock);
    } catch (const std::invalid_argument& misfit) {
      fail(lock, with_step(misfit));
    } catch (...) {
      fail(lock, std::current_exception());
    }
  }
  cancel_reads();
  planner_wakes_.wait(lock, [&] { return !reads_flying(); });
  try {
    drop();
  } catch (const std::bad_alloc&) {
    // The destructor frees what is left.
  }
  (void)share_->resize(0);
  ended_ = true;
  given_back_.notify_all();
}

// Does one piece of work, or waits until there is some.
void Lookahead::work(std::unique_lock<std::mutex>& lock) {
  if (start_over_ && !reads_flying()) {
    start_over();
  } else if (start_over_ || error_) {
    planner_wakes_.wait(lock);
  } else {
    lock.unlock();
    const Prospect prospect = in_.engine.prospect();  // unlocked: it may ask about many files
    lock.lock();
    prospect_ = prospect;
    if (stopping_ || start_over_ || error_) return;
    if (!advance(lock)) planner_wakes_.wait(lock);
  }
}

// If memory is so short that even this fails, it keeps only the least room and returns the share
// anyway, because a claim waits for it.
void Lookahead::start_over() {
  start_over_ = false;
  const std::optional<std::uint64_t> most_bytes = std::exchange(give_back_to_, std::nullopt);
  try {
    drop();
    if (!fit(most_bytes ? *most_bytes : share_->most_bytes())) (void)fit(share_bytes_);
  } catch (...) {
    (void)share_->resize(0);
    share_bytes_ = ahead_ = hot_ahead_ = slots_ = 0;
    given_back_.notify_all();
    throw;
  }
  given_back_.notify_all();
}

std::exception_ptr Lookahead::with_step(const std::invalid_argument& misfit) const noexcept {
  try {
    return std::make_exception_ptr(
        std::invalid_argument(std::string(misfit.what()) + " (" + step_text(making_step_) + ")"));
  } catch (...) {
    return std::current_exception();
  }
}

void Lookahead::fail(std::unique_lock<std::mutex>& lock, std::exception_ptr error) {
  if (!lock.owns_lock()) lock.lock();
  if (!error_) error_ = std::move(error);
  consumer_wakes_.notify_all();
}

// Does one piece of work, first what the consumer may be waiting for, then what keeps the disk
// busy. False: there is nothing to do until something changes.
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
  if (direct_->exhausted() && next_plan_step_ < last_step_) grow();
  if (direct_->exhausted() && next_plan_step_ < last_step_ && staging_pays()) {
    return plan_window(lock);
  }
  const bool between = delivering_.next_step == delivering_.last_step;
  return between && read_direct(lock);
}

// There is nothing to do until the consumer has taken all but this many batches, so it need not
// wake the planner before.
bool Lookahead::wait_until_left(std::size_t batches) {
  wake_at_ = std::max(wake_at_, batches);
  return false;
}

std::unique_ptr<Lookahead::Coming> Lookahead::make_batch(std::uint64_t step) {
  auto coming = std::make_unique<Coming>();
  coming->step = step;
  coming->batch = pool_->take();
  const Schedule::Turn turn = schedule_.at(step);
  Buffer& buffer = coming->buffer();
  buffer.step = turn.step;
  buffer.epoch = turn.epoch;
  buffer.rows = schedule_.count(step);
  buffer.samples.resize(buffer.rows);
  schedule_.fill(in_.order, step, in_.dataset.size(), buffer.samples);
  return coming;
}

// Makes the next batch, once its samples have arrived as they were stored. Batches are made in step
// order even if a later one has arrived first: one that cannot be made must not stop those before
// it.
bool Lookahead::finish(std::unique_lock<std::mutex>& lock) {
  const auto next =
      std::find_if(coming_.begin(), coming_.end(), [](const auto& batch) { return !batch->made; });
  if (next == coming_.end() || !(*next)->landed()) return false;
  Coming& coming = **next;  // safe without the lock: the consumer takes only batches that are made
  lock.unlock();
  const Buffer& buffer = coming.buffer();
  const std::byte* const raw = buffer.memory.data() + raw_offset_bytes_;
  staged_.clear();
  for (std::size_t i = 0; i < buffer.rows; ++i) {
    staged_.push_back(raw + i * in_.dataset.sample_bytes());
  }
  making_step_ = coming.step;
  in_.dataset.deliver(buffer.samples, staged_, buffer.memory.data());
  lock.lock();
  coming.made = true;
  consumer_wakes_.notify_one();
  return true;
}

}  // namespace lowtide

#include "loader/batch_queue.h"

#include <utility>

namespace lowtide {

std::optional<Batch> BatchQueue::next(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  const CondVar::Clock::time_point called = CondVar::Clock::now();
  // The last call threw. This one tries again, because the cause may have passed.
  if (std::exchange(error_told_, false)) {
    error_ = nullptr;
    start_over_ = true;
    stir();
  }
  if (!has_answer()) {
    // Told that the consumer waits, the planner starts a batch that it would otherwise put off
    // until others can be merged with it.
    waiting_ = true;
    stir();
    while (!has_answer() && consumer_wakes_.wait_until(mutex_, called + timeout)) {
    }
    waiting_ = false;
    if (!has_answer()) return std::nullopt;
  }
  if (stopping_ || left_ == 0) return Batch();
  if (batches_.empty()) {  // so the error is next: batches that were pushed before it come first
    error_told_ = true;
    std::rethrow_exception(error_);
  }
  Batch batch = std::move(batches_.front());
  batches_.pop_front();
  --left_;
  ++taken_;
  took_ = true;
  // Each wake is a system call, so the planner is woken only if it has something to do.
  const bool wake = batches_.size() < wake_below_;
  lock.unlock();
  if (wake) planner_wakes_.notify_one();
  return batch;
}

bool BatchQueue::over() const {
  const MutexLock lock(mutex_);
  return stopping_ || left_ == 0;
}

void BatchQueue::cancel() noexcept {
  const MutexLock lock(mutex_);
  stopping_ = true;
  stir();
  consumer_wakes_.notify_all();
}

// Waits for the planner, because only the planner knows when no read writes into the buffers.
void BatchQueue::ask_back(std::uint64_t most_bytes) {
  const MutexLock lock(mutex_);
  if (!running_) return;
  asked_back_ = most_bytes;
  start_over_ = true;
  stir();
  while (running_ && (asked_back_ || giving_back_)) given_back_.wait(mutex_);
  asked_back_.reset();
}

// Called by threads that must not allocate or throw, so the sets themselves form the list.
void BatchQueue::landed(LoaderSet& set) noexcept {
  const MutexLock lock(mutex_);
  set.next_landed = std::exchange(landed_, &set);
  stir();
}

void BatchQueue::stir() noexcept {
  stirred_ = true;
  planner_wakes_.notify_one();
}

// A planner that has just got the news is awake: until it waits again, no batch that is taken needs
// to wake it.
BatchQueue::News BatchQueue::take_news() {
  stirred_ = took_ = false;
  wake_below_ = 0;
  return {.stopping = stopping_,
          .start_over = start_over_,
          .waiting = waiting_,
          .ready = batches_.size(),
          .landed = std::exchange(landed_, nullptr)};
}

BatchQueue::News BatchQueue::news() {
  const MutexLock lock(mutex_);
  return take_news();
}

BatchQueue::News BatchQueue::wait(std::size_t wake_below) {
  const MutexLock lock(mutex_);
  wake_below_ = wake_below;
  // Without took_, a planner that finds too few batches and can do nothing about it would never
  // sleep.
  while (!stirred_ && !(took_ && batches_.size() < wake_below_)) planner_wakes_.wait(mutex_);
  return take_news();
}

void BatchQueue::push(Batch batch) {
  const MutexLock lock(mutex_);
  batches_.push_back(std::move(batch));
  if (waiting_) consumer_wakes_.notify_one();
}

void BatchQueue::push_all(std::vector<Batch>* batches) {
  const MutexLock lock(mutex_);
  for (Batch& batch : *batches) batches_.push_back(std::move(batch));
  if (waiting_) consumer_wakes_.notify_one();
}

void BatchQueue::fail(std::exception_ptr error) noexcept {
  const MutexLock lock(mutex_);
  if (!error_) error_ = std::move(error);  // later ones are mostly consequences of the first
  consumer_wakes_.notify_one();
}

BatchQueue::Restart BatchQueue::start_over() {
  std::deque<Batch> dropped;  // destroyed without the lock, because that locks the pool
  const MutexLock lock(mutex_);
  dropped.swap(batches_);
  error_ = nullptr;
  error_told_ = false;
  start_over_ = false;
  giving_back_ = asked_back_.has_value();
  return {.taken = taken_, .most_bytes = std::exchange(asked_back_, std::nullopt)};
}

void BatchQueue::gave_back() noexcept {
  const MutexLock lock(mutex_);
  giving_back_ = false;
  given_back_.notify_all();
}

void BatchQueue::begin() noexcept {
  const MutexLock lock(mutex_);
  running_ = true;
}

void BatchQueue::end() noexcept {
  std::deque<Batch> dropped;  // as in start_over()
  const MutexLock lock(mutex_);
  dropped.swap(batches_);
  running_ = false;
  given_back_.notify_all();
}

}  // namespace lowtide

// Batches through Staging: whether that pays off, the next window, its pieces, its batches.
#include <algorithm>
#include <utility>

#include "loader/lookahead_parts.h"

namespace lowtide {
namespace {

constexpr std::size_t kReadyAhead = 3;  // batches that are gathered before the consumer asks
// Slots beyond a window: reads of the next window start in them before this one is delivered.
constexpr std::uint64_t kSpareBatches = 4;
// Of the gap to the average spacing of rows; below this so few reads merge that staging is useless.
constexpr double kLeastMergeShare = 0.1;

}  // namespace

bool Lookahead::staging_pays() {
  if (slots_ == 0) return false;
  if (in_.dataset.parts() > 1) return true;
  if (prospect_.resident) return false;
  const double spacing = static_cast<double>(in_.dataset.data_bytes()) / slots_;
  return prospect_.gap_bytes > kLeastMergeShare * spacing;
}

bool Lookahead::plan_window(std::unique_lock<std::mutex>& lock) {
  // Batches that were read while the data was in memory must be delivered first.
  if (coming_.size() > ahead_) return wait_until_left(ahead_);
  // The share has a new size: new slots are made once the old ones are empty.
  const bool other_size = staging_ && staging_->slots() != slots_;
  if (other_size && delivering_.next_step != delivering_.last_step) return false;
  const std::uint64_t batch = schedule_.batch_size;
  const std::uint64_t spare = std::min(kSpareBatches, slots_ / batch / 4);
  const std::uint64_t most = std::max<std::uint64_t>(1, slots_ / batch - spare);
  const std::uint64_t steps = std::min({window_steps_, most, last_step_ - next_plan_step_});
  const std::uint64_t first = std::exchange(next_plan_step_, next_plan_step_ + steps);
  window_steps_ = std::min(most, window_steps_ * 2);
  lock.unlock();
  pool_->keep(ahead_ + 1);
  if (!staging_ || other_size) {
    staging_.reset();
    staging_ = std::make_unique<Staging>(in_.dataset, in_.order, schedule_, slots_);
  }
  staging_->plan(first, first + steps, &reading_);
  lock.lock();
  return true;
}

// Copies the next batch of a window that has arrived completely.
bool Lookahead::gather(std::unique_lock<std::mutex>& lock) {
  if (delivering_.next_step == delivering_.last_step) return false;
  const std::size_t most = std::min(std::max<std::size_t>(ahead_, waiting_ ? 1 : 0), kReadyAhead);
  if (coming_.size() >= most) return wait_until_left(most > 0 ? most - 1 : 0);
  lock.unlock();
  std::unique_ptr<Coming> coming = make_batch(delivering_.next_step);
  making_step_ = coming->step;
  staging_->gather(&delivering_, coming->buffer().samples, coming->buffer().memory.data());
  lock.lock();
  coming_.push_back(std::move(coming));
  consumer_wakes_.notify_one();
  return true;
}

bool Lookahead::read_window(std::unique_lock<std::mutex>& lock) {
  if (reading_.empty()) return false;
  const std::uint32_t can = staging_->submittable(reading_);
  const std::uint32_t rest = reading_.samples - reading_.submitted;
  const auto most = static_cast<std::uint32_t>(piece_samples_);
  // Small pieces merge badly, so this waits for the slots of a whole one.
  if (can == 0 || can < std::min(rest, most)) return false;
  Piece* piece = free_piece();
  if (piece == nullptr) return false;
  piece->group = nullptr;
  piece->first_step = reading_.first_step;
  piece->last_step = reading_.last_step;
  lock.unlock();
  staging_->take_piece(most, &reading_, &piece->samples, &piece->targets, &piece->storage);
  submit(*piece, lock);
  return true;
}

}  // namespace lowtide

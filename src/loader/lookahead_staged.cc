// Batches by way of Staging: whether that pays, the next window, its pieces, its batches.
#include <algorithm>
#include <utility>

#include "loader/lookahead_parts.h"

namespace lowtide {
namespace {

constexpr std::size_t kReadyAhead = 3;      // batches gathered before they are asked for
constexpr std::uint64_t kSpareBatches = 4;  // slots beyond a window: they carry over its end
constexpr double kLeastMergeShare = 0.1;    // of gap to spacing: below, looking far brings nothing

}  // namespace

bool Lookahead::staging_pays() {
  if (slots_ == 0) return false;
  if (in_.dataset.parts() > 1) return true;
  if (prospect_.resident) return false;
  const double spacing = static_cast<double>(in_.dataset.data_bytes()) / slots_;
  return prospect_.gap_bytes > kLeastMergeShare * spacing;
}

bool Lookahead::plan_window(std::unique_lock<std::mutex>& lock) {
  if (coming_.size() > ahead_) return wait_until_left(ahead_);  // batches in memory make way first
  // More room since the slots were made: new ones are, once the old ones are empty.
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

// Copies the next batch of a window that is all there.
bool Lookahead::gather(std::unique_lock<std::mutex>& lock) {
  if (delivering_.next_step == delivering_.last_step) return false;
  const std::size_t most = std::min(std::max<std::size_t>(ahead_, waiting_ ? 1 : 0), kReadyAhead);
  if (coming_.size() >= most) return wait_until_left(most > 0 ? most - 1 : 0);
  lock.unlock();
  std::unique_ptr<Coming> batch = make_batch(delivering_.next_step);
  making_step_ = batch->step;
  staging_->gather(&delivering_, batch->lease->samples, batch->lease->memory.data());
  lock.lock();
  coming_.push_back(std::move(batch));
  consumer_wakes_.notify_one();
  return true;
}

bool Lookahead::read_window(std::unique_lock<std::mutex>& lock) {
  if (reading_.empty()) return false;
  const std::uint32_t can = staging_->submittable(reading_);
  const std::uint32_t rest = reading_.samples - reading_.submitted;
  const auto most = static_cast<std::uint32_t>(piece_samples_);
  // Small pieces merge badly: wait for the slots of a whole one.
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

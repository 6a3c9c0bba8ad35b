// Batches that are read directly into their buffers, several together.
#include <algorithm>
#include <utility>

#include "loader/lookahead_parts.h"

namespace lowtide {
namespace {

constexpr std::uint64_t kSetReads = 128;  // enough reads to be worth handing over

}  // namespace

// Reads the next group of batches, or the next piece of it, directly into their buffers.
bool Lookahead::read_direct(std::unique_lock<std::mutex>& lock) {
  if (direct_->exhausted() && !plan_group(lock)) return false;
  if (direct_->exhausted()) return true;  // rows of 0 bytes need no reads
  Piece* piece = free_piece();
  if (piece == nullptr) return false;
  piece->group = coming_.back()->group;
  piece->first_step = group_step_;
  piece->last_step = next_plan_step_;
  lock.unlock();
  direct_->take_piece(piece_samples_, &piece->samples, &piece->targets, &piece->storage);
  submit(*piece, lock);
  return true;
}

// How many batches are read together. If the data is in memory and the reads are sorted, it leaves
// room for a second group, which is planned while the first one is read: otherwise the threads
// would idle meanwhile. Else it is as many as make a set of reads that is worth handing over.
std::uint64_t Lookahead::most_together() const {
  if (prospect_.held) return 1;
  const bool in_order = in_.order.sequential();
  if (prospect_.resident && !in_order) {
    return std::max<std::uint64_t>(1, (std::max<std::size_t>(1, hot_ahead_) - 1) / 2);
  }
  const std::uint64_t batch_bytes =
      std::max<std::uint64_t>(1, schedule_.batch_size * in_.dataset.sample_bytes());
  const std::uint64_t worth = in_order ? kSetBytes / batch_bytes : kSetReads / schedule_.batch_size;
  const std::uint64_t most = prospect_.resident ? hot_ahead_ / 3 : ahead_ / 4;
  return std::clamp<std::uint64_t>(worth, 1, std::max<std::uint64_t>(1, most));
}

bool Lookahead::plan_group(std::unique_lock<std::mutex>& lock) {
  const bool hot = prospect_.resident;
  const bool together = hot && !prospect_.held;
  const std::size_t most = std::max<std::size_t>(together ? hot_ahead_ : ahead_, waiting_ ? 1 : 0);
  const std::uint64_t wanted = std::min(group_steps_, most_together());
  // One buffer is always with the consumer, who releases a batch only after getting the next.
  const std::size_t free = most > 1 ? most - 1 : most;
  const std::uint64_t room = free - std::min(free, coming_.size());
  if (next_plan_step_ == last_step_) return false;
  // The first batch is urgent: until it has arrived, planning must not compete with its reads.
  const bool first_comes = group_step_ == first_step_ && !coming_.empty();
  if (wanted > 1 && first_comes && !coming_.front()->ready()) return false;
  if (room < (coming_.empty() ? 1 : wanted)) {
    return wait_until_left(free > wanted ? free - wanted : 0);
  }
  // A group stays within one epoch: Direct requires that only its last batch is short.
  const std::uint64_t steps = std::min({wanted, room, schedule_.at(next_plan_step_).left});
  group_steps_ = std::min(most_together(), group_steps_ * 2);
  group_step_ = std::exchange(next_plan_step_, next_plan_step_ + steps);
  const bool sort = !prospect_.held;
  lock.unlock();
  if (hot) staging_.reset();
  pool_->keep(most + 1);
  const auto group = std::make_shared<Group>();
  std::vector<std::unique_ptr<Coming>> batches;
  std::vector<Buffer*> buffers;
  for (std::uint64_t step = group_step_; step < group_step_ + steps; ++step) {
    batches.push_back(make_batch(step));
    batches.back()->group = group;
    batches.back()->made = in_.dataset.as_read();
    buffers.push_back(&batches.back()->buffer());
    if (in_.dataset.sample_bytes() > 0) {
      group->left += buffers.back()->rows * in_.dataset.parts();
    }
  }
  direct_->plan(buffers, raw_offset_bytes_, sort);
  lock.lock();
  for (auto& batch : batches) coming_.push_back(std::move(batch));
  if (group->left == 0) consumer_wakes_.notify_one();
  return true;
}

}  // namespace lowtide

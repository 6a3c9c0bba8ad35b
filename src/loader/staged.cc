#include "loader/staged.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lowtide {
namespace {

constexpr std::size_t kReadyAhead = 3;  // batches that are gathered before the consumer asks
// Slots beyond a group: reads of the next group start in them before this one is delivered.
constexpr std::uint64_t kSpareBatches = 4;
// Of the gap to the average spacing of samples; below this so few reads merge that staging is
// useless.
constexpr double kLeastMergeShare = 0.1;

}  // namespace

StagedPlanner::StagedPlanner(PlanContext& context)
    : c_(context),
      batch_rows_(batch_rows(context.schedule)),
      cutter_(context.dataset, batch_rows_) {}

bool StagedPlanner::pays() const {
  if (c_.room.slots == 0) return false;
  if (c_.dataset.parts() > 1) return true;
  if (c_.prospect.resident) return false;
  const double spacing =
      static_cast<double>(c_.dataset.data_bytes()) / static_cast<double>(c_.room.slots);
  return c_.prospect.gap_bytes > kLeastMergeShare * spacing;
}

bool StagedPlanner::work(const BatchQueue::News& news, bool may_plan) {
  wake_below_ = 0;
  return gather(news) || submit() || turn_over() || (may_plan && plan(news));
}

void StagedPlanner::landed(const LoaderSet& set) noexcept {
  --reading_.flying;
  if (set.outcome.ok() || set.outcome.cancelled || reading_.error) return;
  const std::byte* const into = set.storage[set.outcome.read].into;
  const auto number = static_cast<std::uint32_t>(static_cast<std::uint64_t>(into - memory_.data()) /
                                                 c_.dataset.sample_bytes());
  const auto found = std::ranges::find(reading_.slot_of, number);
  const auto place = static_cast<std::uint64_t>(found - reading_.slot_of.begin());
  reading_.error = c_.failure(set, reading_.first_turn + place / batch_rows_);
}

// Copies the next batch of the group that has arrived.
bool StagedPlanner::gather(const BatchQueue::News& news) {
  if (delivering_.empty()) return false;
  const std::size_t most =
      std::min(std::max<std::size_t>(c_.room.ahead, news.waiting ? 1 : 0), kReadyAhead);
  if (news.ready >= most) {
    wake_below_ = most;
    return false;
  }
  const std::uint64_t turn = delivering_.next_turn;
  Batch batch = c_.make_batch(turn);
  const std::uint32_t* const slots =
      delivering_.slot_of.data() + (turn - delivering_.first_turn) * batch_rows_;
  const std::uint64_t rows = Buffer::of(batch).rows;
  staged_.clear();
  for (std::uint64_t row = 0; row < rows; ++row) staged_.push_back(slot(slots[row]));
  c_.deliver(batch, turn, staged_);
  free_.insert(free_.end(), slots, slots + rows);
  ++delivering_.next_turn;
  c_.queue.push(std::move(batch));
  return true;
}

bool StagedPlanner::submit() {
  if (reading_.empty() || reading_.error || cutter_.exhausted()) return false;
  const std::uint64_t most = c_.room.set_samples;
  // Only the first part takes new slots; later parts go into the slots of their samples. Small sets
  // merge badly, so this waits for the slots of a whole one.
  const std::uint64_t slots = cutter_.part() == 0 ? std::min(cutter_.left(), most) : 0;
  if (free_.size() < slots) return false;
  LoaderSet* const set = c_.sets.free();
  if (set == nullptr) return false;
  cutter_.cut(
      most,
      [&](const Cutter::Place& place) {
        std::uint32_t& number = reading_.slot_of[place.batch * batch_rows_ + place.row];
        if (cutter_.part() == 0) {
          number = free_.back();
          free_.pop_back();
        }
        return slot(number);
      },
      &set->storage);
  set->first_turn = reading_.first_turn;
  ++reading_.flying;
  c_.sets.submit(*set);
  return true;
}

// The group that has been read becomes the one that is delivered.
bool StagedPlanner::turn_over() {
  if (!delivering_.empty() || reading_.empty()) return false;
  if (reading_.error) std::rethrow_exception(reading_.error);
  if (!cutter_.exhausted() || reading_.flying > 0) return false;
  std::swap(delivering_, reading_);
  reading_.next_turn = reading_.last_turn;
  return true;
}

bool StagedPlanner::plan(const BatchQueue::News& news) {
  if (!reading_.empty() || c_.next_turn == c_.last_turn) return false;
  // Batches that were read while the data was in memory are delivered first.
  if (news.ready > c_.room.ahead) {
    wake_below_ = c_.room.ahead + 1;
    return false;
  }
  // If the share has a new size, new slots are made once the old ones are empty.
  if (slots_ != c_.room.slots && !delivering_.empty()) return false;
  const std::uint64_t all = c_.room.slots / batch_rows_;
  const std::uint64_t most = std::max<std::uint64_t>(1, all - std::min(kSpareBatches, all / 4));
  const std::uint64_t turns = std::min({group_turns_, most, c_.last_turn - c_.next_turn});
  group_turns_ = std::min(most, group_turns_ * 2);
  reading_.first_turn = reading_.next_turn = c_.next_turn;
  reading_.last_turn = c_.next_turn += turns;
  reading_.flying = 0;
  try {
    fill(turns);
  } catch (...) {
    // The consumer hears of it when it has had the batches before.
    reading_.error = std::current_exception();
  }
  return true;
}

void StagedPlanner::fill(std::uint64_t turns) {
  c_.pool.keep(c_.room.ahead + 1);
  if (slots_ != c_.room.slots || memory_.size() == 0) make_slots();
  reading_.slot_of.resize(turns * batch_rows_);
  cutter_.begin(turns, /*sort=*/true);
  for (std::uint64_t turn = reading_.first_turn; turn < reading_.last_turn; ++turn) {
    samples_.resize(c_.schedule.count(turn));
    c_.schedule.fill(c_.order, turn, c_.dataset.size(), samples_);
    cutter_.add(samples_);
  }
  cutter_.end();
}

void StagedPlanner::make_slots() {
  memory_ = {};
  slots_ = c_.room.slots;
  memory_ = Memory(slots_ * c_.dataset.sample_bytes(), false, "reads ahead");
  // Filled in reverse, so that the first slots are used first: a short epoch then touches only
  // their pages.
  free_.resize(slots_);
  std::iota(free_.rbegin(), free_.rend(), 0U);
}

}  // namespace lowtide

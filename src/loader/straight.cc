#include "loader/straight.h"

#include <algorithm>
#include <utility>

namespace lowtide {

bool StraightPlanner::work(const BatchQueue::News& news, bool may_plan) {
  wake_below_ = 0;
  if (!groups_.empty() && groups_.front().error) return retreat();
  if (hand_over()) return true;
  if (!groups_.empty() && !groups_.back().cut) return submit();
  return may_plan && plan(news);
}

void StraightPlanner::landed(const LoaderSet& set) noexcept {
  const auto group = std::ranges::find(groups_, set.first_turn, &Group::first_turn);
  --group->flying;
  if (set.outcome.ok() || set.outcome.cancelled || group->error) return;
  // A group has several batches. The target of the failed read identifies the one to report.
  const std::byte* const into = set.storage[set.outcome.read].into;
  std::uint64_t turn = group->first_turn;
  for (const Batch& batch : group->batches) {
    const auto bytes = Buffer::of(batch).memory.bytes();
    if (into >= bytes.data() && into < bytes.data() + bytes.size()) break;
    ++turn;
  }
  group->error = c_.failure(set, turn);
}

// Pushes the first group if it has landed. Batches that are not delivered as they were read are
// made one at a time, so that the consumer gets the first one early. They are made in the order of
// their turns: one that cannot be made must not stop those before it.
bool StraightPlanner::hand_over() {
  if (groups_.empty()) return false;
  Group& group = groups_.front();
  if (!group.landed()) return false;
  if (c_.dataset.as_read()) {
    c_.queue.push_all(&group.batches);
    group.pushed = group.batches.size();
    pending_ -= group.pushed;
  } else {
    const Batch& batch = group.batches[group.pushed];
    const Buffer& buffer = Buffer::of(batch);
    c_.deliver(
        batch, group.first_turn + group.pushed,
        {.samples = buffer.samples, .bytes = buffer.memory.data() + c_.room.raw_offset_bytes});
    c_.queue.push(std::move(group.batches[group.pushed]));
    ++group.pushed;
    --pending_;
  }
  if (group.pushed == group.batches.size()) groups_.pop_front();
  return true;
}

// The first group has failed. The batches before the failed one must come before its error, but
// other reads of its set may not have been made. So the turns of the group are planned again, each
// in a group of its own, whose error is thrown.
bool StraightPlanner::retreat() {
  const Group& group = groups_.front();
  // Its sets may still be in flight; PlanLoop starts over only when all have landed.
  if (group.turns == 1) std::rethrow_exception(group.error);
  if (c_.sets.flying() > 0) return false;  // not cancelled: a cancelled set cannot be used again
  c_.next_turn = group.first_turn;
  alone_until_ = group.first_turn + group.turns;
  groups_.clear();
  pending_ = 0;
  return true;
}

bool StraightPlanner::submit() {
  Group& group = groups_.back();
  LoaderSet* const set = group.error ? nullptr : c_.sets.free();
  if (set == nullptr) return false;
  cut(&group, &set->storage);
  if (set->storage.empty()) return true;  // all of it is held in memory and has been copied
  set->first_turn = group.first_turn;
  ++group.flying;
  c_.sets.submit(*set);
  return true;
}

// How many batches are read together. At most a fraction of the room, so that the engine reads one
// group while the consumer takes another.
std::uint64_t StraightPlanner::most_together() const {
  // One thread copies a whole set of held data, so batches in sets of their own go in parallel.
  if (c_.prospect.held) return 1;
  const bool in_order = c_.order.sequential();
  // As many as make a set of reads that is worth handing over.
  const std::uint64_t batch_bytes =
      std::max<std::uint64_t>(1, c_.schedule.batch_size * c_.dataset.sample_bytes());
  const std::uint64_t set_bytes = c_.prospect.far ? kFarSetBytes : kSetBytes;
  const std::uint64_t worth =
      in_order ? set_bytes / batch_bytes : kSetReads / c_.schedule.batch_size;
  const std::uint64_t most = c_.prospect.resident ? c_.room.hot_ahead / 3 : c_.room.ahead / 4;
  return std::clamp<std::uint64_t>(worth, 1, std::max<std::uint64_t>(1, most));
}

// Plans the next group if there is room for it.
bool StraightPlanner::plan(const BatchQueue::News& news) {
  if (c_.next_turn == c_.last_turn) return false;
  const bool together = c_.prospect.resident && !c_.prospect.held;
  const std::uint64_t most =
      std::max<std::uint64_t>(together ? c_.room.hot_ahead : c_.room.ahead, news.waiting ? 1 : 0);
  const std::uint64_t wanted =
      c_.next_turn < alone_until_ ? 1 : std::min(group_turns_, most_together());
  // One fewer than there is room for: the consumer releases a batch only after it has the next one,
  // and so holds two for a moment.
  const std::uint64_t free = most > 1 ? most - 1 : most;
  const std::uint64_t ahead = pending_ + news.ready;
  // The first batch is urgent: until it has arrived, planning must not compete with its reads.
  const bool first = groups_.size() == 1 && groups_.front().first_turn == c_.first_turn;
  if (wanted > 1 && first && !groups_.front().landed()) return false;
  const std::uint64_t room = free - std::min(free, ahead);
  if (room < (ahead == 0 ? 1 : wanted)) {
    const std::uint64_t left = free > wanted ? free - wanted : 0;
    wake_below_ = left >= pending_ ? left - pending_ + 1 : 0;
    return false;
  }
  const std::uint64_t turns = std::min({wanted, room, c_.last_turn - c_.next_turn});
  group_turns_ = std::min(most_together(), group_turns_ * 2);
  c_.pool.keep(most + 1);
  Group& group = groups_.emplace_back();
  group.first_turn = c_.next_turn;
  group.turns = turns;
  c_.next_turn += turns;
  try {
    fill(&group);
  } catch (...) {
    // It is thrown after the batches before it: retreat().
    group.error = std::current_exception();
    group.cut = true;
  }
  return true;
}

void StraightPlanner::fill(Group* group) {
  for (std::uint64_t i = 0; i < group->turns; ++i) {
    group->batches.push_back(c_.make_batch(group->first_turn + i));
    ++pending_;
  }
  group->cut = c_.dataset.sample_bytes() == 0;
}

// Takes the next samples of a group: all of one part, batch after batch, then the next part. A set
// per part would cost a hand-over per column, so several parts go into one set.
void StraightPlanner::cut(Group* group, std::vector<Read>* reads) {
  reads->clear();
  for (std::uint64_t taken = 0; !group->cut && taken < c_.room.set_samples;) {
    const Buffer& buffer = Buffer::of(group->batches[group->batch]);
    const std::uint64_t count = std::min(c_.room.set_samples - taken, buffer.rows - group->row);
    const auto samples = std::span(buffer.samples).subspan(group->row, count);
    targets_.resize(count);
    for (std::size_t number = 0; number < c_.dataset.fields(); ++number) {
      const std::uint64_t unit_bytes = c_.dataset.field(number).unit_bytes;
      std::byte* const first =
          buffer.memory.data() + group->row * unit_bytes +
          (c_.dataset.as_read() ? buffer.columns[number].offset_bytes : c_.room.raw_offset_bytes);
      for (std::uint64_t i = 0; i < count; ++i) targets_[i] = first + i * unit_bytes;
      c_.dataset.locate(number, group->part, samples, targets_, *reads);
    }
    taken += count;
    group->row += count;
    if (group->row < buffer.rows) continue;
    group->row = 0;
    if (++group->batch < group->batches.size()) continue;
    group->batch = 0;
    group->cut = ++group->part == c_.dataset.parts();
  }
}

}  // namespace lowtide

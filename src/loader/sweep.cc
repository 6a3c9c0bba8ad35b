#include "loader/sweep.h"

#include <algorithm>
#include <utility>

namespace lowtide {
namespace {

// The ratio of the gap to the average distance between samples. Below this, so few reads merge that
// sweeping is useless.
constexpr double kLeastMergeShare = 0.1;
// For servers: once samples are requested, later ones cannot be merged with them, so most must
// wait.
constexpr std::uint64_t kMostFarSets = 8;

}  // namespace

SweepPlanner::SweepPlanner(PlanContext& context)
    : c_(context),
      batch_rows_(batch_rows(context.schedule)),
      parts_(context.dataset.parts()),
      row_bits_(Bins::bits_for(batch_rows_)) {
  if (context.dataset.as_read() || !context.dataset.ragged()) return;
  staging_ = std::make_shared<Pool>(staged_bytes(context.dataset, context.schedule), batch_rows_,
                                    /*keep=*/1);
}

bool SweepPlanner::can_sort(const Dataset& dataset, std::uint64_t rows, std::uint64_t batches) {
  return Bins::bits_for(dataset.size()) + Bins::bits_for(rows) + Bins::bits_for(batches) < 64;
}

bool SweepPlanner::pays() const {
  if (c_.room.sweep == 0) return false;
  // Only this planner reads ragged samples. The parts of many samples are close together in the
  // file, so sorting them always pays off.
  if (parts_ > 1 || c_.dataset.ragged()) return true;
  if (c_.prospect.held) return false;
  return c_.prospect.resident || c_.merge_share() > kLeastMergeShare;
}

bool SweepPlanner::work(const BatchQueue::News& news, bool may_plan) {
  wake_below_ = 0;
  if (hand_over(news)) return true;
  if (failed_) return gives_up();
  return (may_plan && plan(news)) || submit();
}

void SweepPlanner::landed(const LoaderSet& set) noexcept {
  if (!set.outcome.ok()) {
    if (set.outcome.cancelled || failed_) return;
    // The set has samples of many batches. The target of the failed read identifies its batch.
    const std::byte* const into = set.storage[set.outcome.read].into;
    error_turn_ = first_turn_;
    const auto contains = [&](const Flight& flight) {
      return into >= flight.bytes && into < flight.bytes + flight.size_bytes;
    };
    while (!contains(ring_[slot_of(error_turn_)])) ++error_turn_;
    error_ = c_.failure(set, error_turn_);
    failed_ = true;
    return;
  }
  for (const std::uint32_t slot : set.slots) {
    if (--ring_[slot].left == 0) ++complete_;
  }
}

// Passes on complete batches, in the order of turns. Batches that must still be converted (windows,
// dense rows) are made one at a time, so that the consumer gets the first one early.
bool SweepPlanner::hand_over(const BatchQueue::News& news) {
  if (flying_ == 0 || front().left > 0) return false;
  if (front().error) std::rethrow_exception(front().error);
  if (!c_.dataset.as_read()) {
    // One fewer than there is room for: while it takes a batch, the consumer holds two.
    const std::size_t most = std::max<std::size_t>(c_.room.ahead > 1 ? c_.room.ahead - 1 : 1, 1);
    // A wake-up costs time on both threads, so this rests until the queue is half empty and then
    // makes several.
    resting_ = news.ready >= most || (resting_ && 2 * news.ready >= most);
    if (resting_) {
      wake_below_ = most - most / 2;
      return false;
    }
    front().batch = delivered();
  } else {
    c_.check(front().batch, first_turn_);
  }
  ready_.clear();
  do {
    ready_.push_back(std::move(front().batch));
    ++first_turn_;
    --flying_;
    --complete_;
  } while (flying_ > 0 && front().left == 0 && !front().error && c_.dataset.as_read() && passes());
  c_.queue.push_all(&ready_);
  return true;
}

// Checks the bytes of the first flight, all of which has landed. If they are not valid, the error
// stays with the flight, so that the consumer first gets the batches before it.
bool SweepPlanner::passes() {
  try {
    c_.check(front().batch, first_turn_);
    return true;
  } catch (...) {
    front().error = std::current_exception();
    return false;
  }
}

// Makes the batch of the first flight from the samples that it has read.
Batch SweepPlanner::delivered() {
  Batch batch = c_.make_batch(first_turn_);
  const Flight& flight = front();
  c_.deliver(batch, first_turn_,
             staging_ ? PlanContext::read_into(flight.batch)
                      : ReadSamples{.samples = Buffer::of(batch).samples, .bytes = flight.bytes});
  return batch;
}

// A set failed, so some batches cannot be completed. The consumer must first get all batches before
// the one with the failed read. These are read again, beginning with a single batch.
bool SweepPlanner::gives_up() {
  if (c_.sets.flying() > 0) return false;
  if (first_turn_ == error_turn_) std::rethrow_exception(error_);
  c_.next_turn = first_turn_;
  clear();
  return true;
}

bool SweepPlanner::submit() {
  if (bins_.left() == 0) return false;
  const bool enough = c_.prospect.far && c_.sets.flying() >= kMostFarSets;
  LoaderSet* const set = enough ? nullptr : c_.sets.free();
  if (set == nullptr) return false;
  cut(set);
  ++swept_;
  if (set->storage.empty()) {  // nothing but empty samples
    set->outcome = {};
    landed(*set);
  } else {
    c_.sets.submit(*set);
  }
  return true;
}

// Takes the next samples of the sweep. A set never continues from the last bin to the first: the
// lane for cached bytes merges only sets that are in file order.
void SweepPlanner::cut(LoaderSet* set) {
  set->storage.clear();
  set->slots.clear();
  while (bins_.left() > 0 && set->slots.size() < c_.room.set_samples) {
    const std::uint64_t part = bins_.part();
    const auto keys = bins_.take(c_.room.set_samples - set->slots.size());
    if (keys.empty() && bins_.at_start() && !set->slots.empty()) return;
    samples_.clear();
    for (const std::uint64_t key : keys) {
      samples_.push_back(bins_.sample_of(key));
      set->slots.push_back(static_cast<std::uint32_t>(bins_.place_of(key) >> row_bits_));
    }
    for (std::size_t number = 0; number < c_.dataset.fields(); ++number) {
      locate(keys, number, part, &set->storage);
    }
  }
}

// Appends the reads of one field of these samples, which are in samples_ too.
void SweepPlanner::locate(std::span<const std::uint64_t> keys, std::size_t number,
                          std::uint64_t part, std::vector<Read>* reads) {
  const SampleField field = c_.dataset.field(number);
  const std::uint64_t row_mask = (std::uint64_t{1} << row_bits_) - 1;
  targets_.clear();
  for (const std::uint64_t key : keys) {
    const std::uint64_t place = bins_.place_of(key);
    const Flight& flight = ring_[place >> row_bits_];
    std::uint64_t unit = place & row_mask;
    if (field.table) unit = flight.offsets[*field.table * (flight.rows + 1) + unit];
    const std::uint64_t column =
        flight.columns == nullptr ? 0 : flight.columns[number].offset_bytes;
    targets_.push_back(flight.bytes + column + unit * field.unit_bytes);
  }
  c_.dataset.locate(number, part, samples_, targets_, *reads);
}

void SweepPlanner::clear() {
  bins_.clear();
  for (Flight& flight : ring_) flight = {};
  flying_ = complete_ = most_ = 0;
  failed_ = false;
  error_ = nullptr;
  prepared_ = {};
  prepare_error_ = nullptr;
}

void SweepPlanner::free_memory() {
  raw_ = {};
  bins_ = {};
  ring_ = {};
  if (staging_) staging_->keep(0);
}

}  // namespace lowtide

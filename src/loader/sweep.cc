#include "loader/sweep.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lowtide/bytes.h"

namespace lowtide {
namespace {

// Of the gap to the average spacing of samples; below this so few reads merge that sweeping is
// useless.
constexpr double kLeastMergeShare = 0.1;
// The same for cached samples, where all of a set merges or nothing. A little gain does not repay
// the pages of so many new buffers: with 256 MiB for rows of 648 bytes in 1.9 GB, a share of 1.2,
// an epoch was a seventh slower; with 512 MiB, a share of 2.4, it was faster from the start.
constexpr double kCachedMergeShare = 1.5;
// The first batch flies alone, because somebody waits for it. The next sweep has this many times as
// many, and so on. A sweep of few batches meets no neighbours, so cached ones should be few; from a
// disk, the second batch should not take long either.
constexpr std::uint64_t kHotGrowth = 16;
// From servers: samples that are on their way meet no more neighbours.
constexpr std::uint64_t kMostFarSets = 8;
constexpr std::uint64_t kGrowth = 4;

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

// Passes on what is complete, in the order of turns. Batches that are not delivered as they were
// read are made one at a time, so that the consumer gets the first one early.
bool SweepPlanner::hand_over(const BatchQueue::News& news) {
  if (flying_ == 0 || front().left > 0) return false;
  if (front().error) std::rethrow_exception(front().error);
  if (!c_.dataset.as_read()) {
    const std::size_t most = std::max<std::size_t>(c_.room.ahead > 1 ? c_.room.ahead - 1 : 1, 1);
    // Each wake-up costs both threads, so several are made per wake-up.
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

// Whether the first flight, of which everything has landed, has bytes that can be. If not, the
// consumer hears of it when it has had the batches before.
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
// the one with the failed read: they are read again, one at a time to begin with.
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

// How many batches may fly. Cached samples that are too far apart to be read together gain little
// from more than a few.
std::uint64_t SweepPlanner::most_flying() const {
  const bool few = c_.prospect.resident && parts_ == 1 && c_.merge_share() < kCachedMergeShare;
  return few ? c_.room.hot_sweep : c_.room.sweep;
}

// Lets one more batch join if there is room.
bool SweepPlanner::plan(const BatchQueue::News& news) {
  if (c_.next_turn == c_.last_turn) return false;
  const std::uint64_t limit = most_flying();
  if (ring_.size() < limit || ring_.size() > c_.room.sweep ||
      (flying_ == 0 && ring_.size() > limit)) {
    if (flying_ > 0) return false;
    make_ring(limit);
  }
  // With several parts a batch can join only at the start: each bin is cut once per part.
  if (parts_ > 1 && !bins_.at_start()) return false;
  if (flying_ == 0) {
    most_ = std::min(limit, most_ * (c_.prospect.resident ? kHotGrowth : kGrowth) + (most_ == 0));
    // Where all neighbours merge, a sweep fetches everything, however many batches fly.
    if (c_.prospect.far && most_ > 1 &&
        c_.merge_share() * static_cast<double>(most_) >= static_cast<double>(c_.room.sweep))
      most_ = limit;
    swept_ = 0;
  }
  if (most_ < limit && swept_ > 0) return false;
  const std::uint64_t most = std::min(most_, limit);
  const std::uint64_t held = flying_ + (c_.dataset.as_read() ? news.ready : 0);
  const std::uint64_t room = most - std::min(most, held);
  const std::uint64_t reading = flying_ - complete_;
  // A batch that flies alone meets no neighbours. So batches join a sweep that is well filled,
  // small ones in numbers that are worth a set of reads, or they start one together.
  const std::uint64_t together = most - most / 2;
  const std::uint64_t worth = std::max<std::uint64_t>(1, kSetReads / batch_rows_);
  const std::uint64_t least = 2 * reading >= most ? std::min(worth, together) : together;
  joining_ = room >= least || (joining_ && room > 0) || (held == 0 && news.waiting);
  if (!joining_) {
    const std::uint64_t ready = most - std::min(most, flying_ + least);
    wake_below_ = std::max<std::size_t>(wake_below_, c_.dataset.as_read() ? ready + 1 : 0);
    return false;
  }
  c_.pool.keep((c_.dataset.as_read() ? c_.room.sweep : c_.room.ahead) + 1);
  if (staging_) staging_->keep(c_.room.sweep + 1);
  if (!prepare(held)) return false;
  join(c_.next_turn);
  ++c_.next_turn;
  return true;
}

// Makes the batch that joins next. False: it is so long that all others must have been taken first.
bool SweepPlanner::prepare(std::uint64_t held) {
  if (!c_.dataset.ragged()) return true;
  Pool& pool = staging_ ? *staging_ : c_.pool;
  if (!prepared_) {
    try {
      prepared_ = c_.make_batch(pool, c_.next_turn, /*prefault=*/false);
    } catch (...) {
      prepare_error_ = std::current_exception();
      return true;
    }
  }
  const Buffer& buffer = Buffer::of(prepared_);
  const std::uint64_t bytes = buffer.columns.back().offset_bytes + buffer.columns.back().size_bytes;
  if (bytes <= buffer.memory.size()) return true;
  if (held > 0) {
    wake_below_ = std::max<std::size_t>(wake_below_, 1);
    return false;
  }
  if (bytes > c_.room.most_batch_bytes) {
    throw std::invalid_argument("memory: the batch of " + c_.step_text(c_.next_turn) + " has " +
                                format_bytes(bytes) + ", but only " +
                                format_bytes(c_.room.most_batch_bytes) +
                                " are free for it; use more memory or a smaller batch_size");
  }
  pool.resize(prepared_, bytes);
  return true;
}

void SweepPlanner::join(std::uint64_t turn) {
  if (flying_ == 0) first_turn_ = turn;
  const std::uint64_t slot = slot_of(turn);
  Flight& flight = ring_[slot];
  flight = {};
  ++flying_;
  try {
    if (prepare_error_) std::rethrow_exception(std::exchange(prepare_error_, nullptr));
    if (c_.dataset.as_read() || staging_) {
      // The threads that read make the pages of many new buffers faster than this one.
      flight.batch =
          prepared_ ? std::exchange(prepared_, {}) : c_.make_batch(turn, /*prefault=*/false);
      const Buffer& buffer = Buffer::of(flight.batch);
      flight.size_bytes = buffer.memory.size();
      flight.rows = buffer.rows;
      flight.columns = buffer.columns.data();
      flight.offsets = buffer.offsets.data();
      samples_.assign(buffer.samples.begin(), buffer.samples.end());
      flight.bytes = buffer.memory.data();
    } else {
      samples_.resize(c_.schedule.count(turn));
      c_.schedule.fill(c_.order, turn, c_.dataset.size(), samples_);
      flight.size_bytes = batch_rows_ * c_.dataset.sample_bytes();
      flight.bytes = raw_.data() + slot * flight.size_bytes;
    }
    if (c_.dataset.sample_bytes() == 0) samples_.clear();
    std::uint64_t place = slot << row_bits_;
    for (const std::uint64_t sample : samples_) bins_.add(sample, place++);
    flight.left = samples_.size() * parts_;
  } catch (...) {
    // The consumer hears of it when it has had the batches before.
    flight.error = std::current_exception();
    bins_.remove(slot << row_bits_, (slot + 1) << row_bits_);
  }
  if (flight.left == 0) ++complete_;
}

// Takes the next samples of the sweep. A set is in file order, so it ends with the sweep.
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

// No longer than what flies: the memory of a short ring stays in the processor's cache.
void SweepPlanner::make_ring(std::uint64_t batches) {
  if (!c_.dataset.as_read() && !staging_) {
    raw_ = {};
    raw_ = Memory(batches * batch_rows_ * c_.dataset.sample_bytes(), false, "reads ahead");
  }
  bins_.reset(c_.dataset.size(), batches * batch_rows_, row_bits_ + Bins::bits_for(batches),
              parts_);
  ring_.assign(batches, {});
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

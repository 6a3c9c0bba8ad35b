// The part of SweepPlanner that lets batches join a sweep.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "loader/sweep.h"
#include "lowtide/bytes.h"

namespace lowtide {
namespace {

// The ratio of the gap to the distance between cached samples, where either a whole set is merged
// or nothing. Below this, merging gains less than the page faults of so many new buffers cost.
// Measured with rows of 648 bytes in 1.9 GB: with 256 MiB (a ratio of 1.2) an epoch was a seventh
// slower; with 512 MiB (2.4) it was faster from the start.
constexpr double kCachedMergeShare = 1.5;
// The first batch flies alone, because the consumer is waiting for it. Each further sweep has this
// many times as many batches as the one before. Sweeps of few batches merge little, so cached data
// grows fast; from a disk, the second batch should not take long either.
constexpr std::uint64_t kHotGrowth = 16;
constexpr std::uint64_t kGrowth = 4;

}  // namespace

// How many batches may be in flight. If cached samples are too far apart to be merged, more than a
// few batches gain little.
std::uint64_t SweepPlanner::most_flying() const {
  const bool few = c_.prospect.resident && parts_ == 1 && c_.merge_share() < kCachedMergeShare;
  return few ? c_.room.hot_sweep : c_.room.sweep;
}

// Lets one more batch join if there is room.
bool SweepPlanner::plan(const BatchQueue::News& news) {
  if (c_.next_turn == c_.last_turn) return false;
  const std::uint64_t limit = most_flying();
  // The length of the ring can change only while nothing flies: keys in the bins contain slots, and
  // a slot is the turn modulo that length.
  if (ring_.size() < limit || ring_.size() > c_.room.sweep ||
      (flying_ == 0 && ring_.size() > limit)) {
    if (flying_ > 0) return false;
    make_ring(limit);
  }
  // With several parts, a batch can join only at the start: the sweep visits each bin once per
  // part, and a batch that came later would miss parts.
  if (parts_ > 1 && !bins_.at_start()) return false;
  if (flying_ == 0) {
    most_ = std::min(limit, most_ * (c_.prospect.resident ? kHotGrowth : kGrowth) + (most_ == 0));
    // If all neighbours merge, a sweep fetches all of the data, however many batches are in flight.
    // So there is no reason to grow slowly.
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
  // A batch that flies alone has no neighbours to merge with. So batches join a sweep that is at
  // least half full, small ones in numbers that are worth a set of reads; otherwise half a sweep
  // starts together.
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

// Makes the batch that joins next. False: it is longer than a usual buffer, and must wait until the
// consumer has taken all others, whose memory it then uses.
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
                                " is free for it; use more memory or a smaller batch_size");
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
      // Not prefaulted: the reading threads fault in many new buffers faster than this one thread.
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
    // The error stays with the flight, so that the consumer first gets the batches before it.
    flight.error = std::current_exception();
    bins_.remove(slot << row_bits_, (slot + 1) << row_bits_);
  }
  if (flight.left == 0) ++complete_;
}

// No longer than necessary, because the memory of a short ring stays in the processor's cache.
void SweepPlanner::make_ring(std::uint64_t batches) {
  if (!c_.dataset.as_read() && !staging_) {
    raw_ = {};
    raw_ = Memory(batches * batch_rows_ * c_.dataset.sample_bytes(), false, "reads ahead");
  }
  bins_.reset(c_.dataset.size(), batches * batch_rows_, row_bits_ + Bins::bits_for(batches),
              parts_);
  ring_.assign(batches, {});
}

}  // namespace lowtide

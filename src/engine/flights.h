// flights.h - the reads that a ring has in flight, one slot each, and how many files they keep
// open. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/checked.h"
#include "engine/lane.h"
#include "span/gap.h"
#include "span/plan.h"

namespace lowtide {

// A set of reads in a ring.
struct UringJob {
  ReadSet* set = nullptr;
  SpanPlan plan;
  Outcome outcome;
  unsigned flying = 0;
  bool fed = false;  // no more spans
  Tally tally;
};

// One read in the ring.
struct Flight {
  UringJob* job = nullptr;
  Span span;
  OpenShard shard;
  std::byte* bounce = nullptr;  // nullptr: straight to the target
  std::byte* into = nullptr;
  std::uint32_t size_bytes = 0;  // as requested, aligned
  std::uint32_t have_bytes = 0;  // from earlier short completions
  int retries = 0;

  [[nodiscard]] std::uint64_t begin_bytes() const {
    return round_down(span.offset_bytes, shard.alignment_bytes);
  }
  [[nodiscard]] std::uint64_t need_bytes() const { return span.end_bytes() - begin_bytes(); }
};

class Flights {
 public:
  // Reads in flight keep their files open, even files that have left the table of open files. So
  // that descriptors do not run out, at most `most_files` are read at a time (0: no limit).
  explicit Flights(std::size_t most_files) : most_files_(most_files) {}

  // Makes this many slots, all free.
  void reset(unsigned slots) {
    flights_.assign(slots, {});
    files_.clear();
    free_.clear();
    for (std::uint32_t i = 0; i < slots; ++i) free_.push_back(i);
  }

  [[nodiscard]] bool full() const { return free_.empty(); }
  // Whether a read of this shard may start now.
  [[nodiscard]] bool may_open(std::uint32_t shard) const {
    return most_files_ == 0 || files_.size() < most_files_ || files_.contains(shard);
  }
  [[nodiscard]] std::uint32_t free_slot() const { return free_.back(); }
  [[nodiscard]] Flight& at(std::uint32_t slot) { return flights_[slot]; }

  // Occupies free_slot().
  void take_off() {
    if (most_files_ > 0) ++files_[flights_[free_.back()].span.shard];
    free_.pop_back();
  }
  void land(std::uint32_t slot) {
    const std::uint32_t shard = flights_[slot].span.shard;
    if (most_files_ > 0 && --files_[shard] == 0) files_.erase(shard);
    flights_[slot] = {};
    free_.push_back(slot);
  }

 private:
  const std::size_t most_files_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint32_t, std::uint32_t> files_;  // reads in flight per shard
};

}  // namespace lowtide

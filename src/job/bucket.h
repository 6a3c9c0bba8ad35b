// bucket.h - one bucket of a shuffle while it is gathered: its bytes on their way from the run
// files, and where its units go.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/outcome.h"
#include "job/run_file.h"
#include "job/shuffle.h"
#include "loader/sort.h"

namespace lowtide {

// The chunks of a bucket, one after the other in memory. Borrows runs, engine and memory. One
// thread at a time.
class BucketRead {
 public:
  BucketRead(const Runs& runs, Engine& engine) : runs_(runs), engine_(engine) {}
  ~BucketRead() {
    for (Waiter& set : sets_) (void)set.wait();
  }
  BucketRead(const BucketRead&) = delete;
  BucketRead& operator=(const BucketRead&) = delete;

  // Finds out which chunks there are.
  void look_up(std::uint64_t bucket) {
    chunks_.clear();
    runs_.chunks(bucket, &chunks_);
    bytes_ = 0;
    for (const Extent& chunk : chunks_) bytes_ += chunk.size_bytes;
    begun_ = false;
  }
  [[nodiscard]] std::uint64_t size_bytes() const { return bytes_; }
  [[nodiscard]] std::span<const Extent> chunks() const { return chunks_; }
  [[nodiscard]] bool begun() const { return begun_; }

  // Begins to read all of them; `into` has room for size_bytes().
  void begin(std::byte* into) {
    begun_ = true;
    into_ = into;
    reads_.clear();
    for (const Extent& chunk : chunks_) {
      reads_.push_back({chunk, into});
      into += chunk.size_bytes;
    }
    const std::span<const Read> all = reads_;
    for (std::size_t first = 0; first < all.size(); first += Engine::kMaxReads) {
      sets_.emplace_back().reads =
          all.subspan(first, std::min(Engine::kMaxReads, all.size() - first));
      engine_.submit(sets_.back());
    }
  }
  // Throws if a byte could not be read.
  [[nodiscard]] std::span<const std::byte> wait() {
    std::optional<std::pair<Outcome, Read>> failed;
    for (; !sets_.empty(); sets_.pop_front()) {
      const Outcome outcome = sets_.front().wait();
      if (!outcome.ok() && !failed) failed = {outcome, sets_.front().reads[outcome.read]};
    }
    if (failed) fail(failed->first, failed->second);
    return {into_, static_cast<std::size_t>(bytes_)};
  }
  // Reads one piece of a chunk and waits for it.
  void read_now(const Extent& piece, std::byte* into) const {
    const Read read{piece, into};
    const Outcome outcome = engine_.read({&read, 1});
    if (!outcome.ok()) fail(outcome, read);
  }

  // Per chunk.
  static constexpr std::uint64_t kChunkBytes = sizeof(Extent) + sizeof(Read);

 private:
  [[noreturn]] void fail(const Outcome& outcome, const Read& read) const {
    throw_outcome(outcome, read, runs_.files()->shards()->path(read.from.shard), "");
  }

  const Runs& runs_;
  Engine& engine_;
  std::vector<Extent> chunks_;
  std::uint64_t bytes_ = 0;
  std::byte* into_ = nullptr;
  bool begun_ = false;
  std::vector<Read> reads_;
  std::deque<Waiter> sets_;
};

// Which unit of a bucket goes to which output position. One thread at a time.
class Places {
 public:
  explicit Places(const Shuffle& shuffle)
      : order_(make_shuffle(shuffle.shape.units, shuffle.seed)),
        unit_bits_(static_cast<unsigned>(std::bit_width(shuffle.shape.units))) {}

  // Of the bucket with these positions. Unit numbers and indexes share 64 bits, which divide() saw
  // to.
  void find(Range positions) {
    keys_.resize(static_cast<std::size_t>(positions.size()));
    order_->fill(0, positions.first, keys_);
    index_bits_ = static_cast<unsigned>(std::bit_width(positions.size()));
    for (std::size_t i = 0; i < keys_.size(); ++i) keys_[i] = keys_[i] << index_bits_ | i;
    radix_sort(index_bits_, unit_bits_, &keys_, &values_);
  }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }
  // The index, in the range of positions, of the rank-th unit of the bucket, counted in the order
  // of the source.
  [[nodiscard]] std::size_t index_of(std::size_t rank) const {
    return static_cast<std::size_t>(keys_[rank] & ((std::uint64_t{1} << index_bits_) - 1));
  }
  // One value per index, for the caller.
  [[nodiscard]] std::span<std::uint64_t> values() { return values_; }

  static constexpr std::uint64_t kUnitBytes = 2 * sizeof(std::uint64_t);

 private:
  const std::unique_ptr<Order> order_;
  const unsigned unit_bits_;
  unsigned index_bits_ = 0;
  std::vector<std::uint64_t> keys_, values_;
};

}  // namespace lowtide

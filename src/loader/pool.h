// pool.h - the buffers in which batches are delivered. They are leased and reused, because fresh
// pages cost several times as much as the read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/budget.h"
#include "core/mutex.h"
#include "dataset/dataset.h"
#include "lowtide/batch.h"
#include "os/memory.h"
#include "os/per_process.h"

namespace lowtide {

class Pool;

// One batch. Written before it is delivered, by the thread that took it from the pool.
struct Batch::Buffer {
  [[nodiscard]] static Buffer& of(const Batch& batch) { return *batch.buffer_; }

  Memory memory;
  std::vector<std::uint64_t> samples;
  std::vector<std::uint64_t> offsets;  // rows + 1 for each table of lengths
  std::vector<Column> columns;         // in `memory`
  std::uint64_t rows = 0;
  std::uint64_t step = 0;
  std::uint64_t epoch = 0;

 private:
  friend class Batch;
  friend class Pool;
  [[nodiscard]] static Batch lease(std::unique_ptr<Buffer> buffer) {
    buffer->leases_.store(1, std::memory_order_relaxed);
    return Batch(buffer.release());
  }

  std::atomic<std::uint64_t> leases_{0};  // copies of the batch
  std::shared_ptr<Pool> pool_;            // while leased
  const void* shelf_ = nullptr;           // of the pool in the process that took it
  bool delivered_ = false;
};
using Buffer = Batch::Buffer;

// Never blocks and never refuses: a user who keeps batches gets new ones, which are counted. Its
// batches may outlive everything else. Any thread. A child of a fork frees the parent's buffers
// instead of returning them.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  // Has at most `keep` buffers, except for those in use.
  Pool(std::size_t buffer_bytes, std::size_t samples, std::size_t keep);
  void keep(std::size_t buffers);

  // A batch without samples and columns, of any contents. Its buffer returns when the last copy
  // goes, or is freed if the pool has enough.
  // `prefault`: the pages of a new buffer are made here; otherwise by whoever writes to them. The
  // user of a batch may give it more memory; then its buffer does not return.
  [[nodiscard]] Batch take(bool prefault = true);
  // Counts a batch as the user's.
  void deliver(const Batch& batch);

  [[nodiscard]] bool fits(std::size_t buffer_bytes, std::size_t samples) const {
    return buffer_bytes == buffer_bytes_ && samples == samples_;
  }
  // Keeps the buffers that are free now, and no more; returns their bytes.
  [[nodiscard]] std::uint64_t keep_free();

  // Bytes of delivered buffers that still exist, except for the consumer's current one.
  [[nodiscard]] std::uint64_t held_bytes() const;

 private:
  friend class Batch;
  struct Shelf {
    mutable Mutex mutex;
    std::size_t keep LOWTIDE_GUARDED_BY(mutex) = 0;
    std::vector<std::unique_ptr<Buffer>> free LOWTIDE_GUARDED_BY(mutex) = {};
    std::size_t alive LOWTIDE_GUARDED_BY(mutex) = 0;
    std::size_t delivered LOWTIDE_GUARDED_BY(mutex) = 0;
  };
  void give_back(std::unique_ptr<Buffer> buffer) noexcept;

  const std::size_t buffer_bytes_, samples_;
  PerProcess<Shelf> shelf_;
};

// The buffers of a run that has ended, for the next one: the pages of new ones would cost as much
// as a good part of its reads. They are a share of the budget, which is given back when somebody
// needs the room. Any thread.
class SpareBuffers {
 public:
  explicit SpareBuffers(Budget& budget) : budget_(budget) {}
  ~SpareBuffers() { (void)exchange({}); }

  // A pool of this kind, with the spare buffers if they are of this kind.
  [[nodiscard]] std::shared_ptr<Pool> take(std::size_t buffer_bytes, std::size_t samples);
  void give(std::shared_ptr<Pool> pool) noexcept;

 private:
  struct Spare {
    std::shared_ptr<Pool> pool = nullptr;
    std::unique_ptr<Share> share = nullptr;
  };
  // A share is destroyed without the lock: its owner may be asked to give it back meanwhile.
  [[nodiscard]] std::shared_ptr<Pool> exchange(Spare spare) LOWTIDE_EXCLUDES(mutex_);

  Budget& budget_;
  Mutex mutex_;
  Spare spare_ LOWTIDE_GUARDED_BY(mutex_);
};

}  // namespace lowtide

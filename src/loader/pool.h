// pool.h - the buffers in which batches are delivered. They are leased and reused, because fresh
// pages cost several times as much as the read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/accelerator.h"
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
  std::vector<std::uint64_t> sources;  // of each sample, once a mixture has delivered it
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
  Accelerator::Fence fence_ = nullptr;  // while the device may still read it
  std::unique_ptr<Buffer> next_;        // in a line
};
using Buffer = Batch::Buffer;

// Never refuses: a user who keeps batches gets new ones, which are counted. Its batches may outlive
// everything else. Any thread. A child of a fork frees the parent's buffers instead of returning
// them.
//
// With a device, every buffer is pinned when it is made. A delivered one that comes back waits in
// line until the device has finished what was started before, and only then is it reused or freed.
// No lock is held during a call to the device. A child of a fork has no device: its buffers are
// plain memory.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  // Has at most `keep` buffers, except for those in use.
  Pool(std::size_t buffer_bytes, std::size_t samples, std::size_t keep,
       std::shared_ptr<Accelerator> device = nullptr);
  // A lower number than before frees what exceeds it, and waits for the device to do so.
  void keep(std::size_t buffers);

  // A batch without samples and columns, of any contents. Its buffer returns when the last copy
  // goes, or is freed if the pool has enough. Waits for the device if it may still read all buffers
  // that are not in use and there are `keep` buffers. Throws NoMemory.
  // `prefault`: the pages of a new buffer are faulted in here; otherwise by the first write to
  // them.
  [[nodiscard]] Batch take(bool prefault = true);
  // Gives a batch that is not delivered yet new memory of another size. Its buffer is not reused.
  // Throws NoMemory.
  void resize(const Batch& batch, std::size_t size_bytes);
  // Counts a batch as the user's.
  void deliver(const Batch& batch);

  [[nodiscard]] bool fits(std::size_t buffer_bytes, std::size_t samples,
                          const std::shared_ptr<Accelerator>& device) const {
    return buffer_bytes == buffer_bytes_ && samples == samples_ && device == device_;
  }
  // Keeps the buffers that are free now or wait for the device, and no more; returns their bytes.
  [[nodiscard]] std::uint64_t keep_free();

  // Bytes of delivered buffers that still exist, except for the consumer's current one.
  [[nodiscard]] std::uint64_t held_bytes() const;

 private:
  friend class Batch;
  // First in, first out. Allocates nothing.
  class Line {
   public:
    Line() = default;
    ~Line() {
      while (pop() != nullptr) {
      }
    }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    void push(std::unique_ptr<Buffer> buffer);
    void push_front(std::unique_ptr<Buffer> buffer);
    [[nodiscard]] std::unique_ptr<Buffer> pop();  // nullptr: it is empty
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // of memory

   private:
    std::unique_ptr<Buffer> first_;
    Buffer* last_ = nullptr;
    std::size_t size_ = 0;
    std::uint64_t bytes_ = 0;
  };
  struct Shelf {
    ~Shelf();
    Accelerator* device = nullptr;  // set by the constructor of the pool; nullptr in a child
    mutable Mutex mutex;
    std::size_t keep LOWTIDE_GUARDED_BY(mutex) = 0;
    std::vector<std::unique_ptr<Buffer>> free LOWTIDE_GUARDED_BY(mutex) = {};
    Line fenced LOWTIDE_GUARDED_BY(mutex) = {};  // the device may still read these
    std::size_t alive LOWTIDE_GUARDED_BY(mutex) = 0;
    std::size_t delivered LOWTIDE_GUARDED_BY(mutex) = 0;
  };
  void give_back(std::unique_ptr<Buffer> buffer) noexcept;
  [[nodiscard]] std::unique_ptr<Buffer> take_fenced(Shelf& shelf) const;
  static void trim(Shelf& shelf, bool wait) noexcept;
  [[nodiscard]] static Memory make_memory(Accelerator* device, std::size_t bytes, bool prefault);
  static void settle(Accelerator* device, Buffer* buffer) noexcept;
  static void free_memory(Accelerator* device, Buffer* buffer) noexcept;

  const std::size_t buffer_bytes_, samples_;
  const std::shared_ptr<Accelerator> device_;
  PerProcess<Shelf> shelf_;
};

// Keeps the buffers of a run that has ended for the next one: the pages of new buffers would cost
// as much as a good part of its reads. They are a share of the budget, which is given back when a
// claim needs the memory. Any thread.
class SpareBuffers {
 public:
  explicit SpareBuffers(Budget& budget) : budget_(budget) {}
  ~SpareBuffers() { (void)exchange({}); }

  // A pool of this kind, with the spare buffers if they are of this kind.
  [[nodiscard]] std::shared_ptr<Pool> take(std::size_t buffer_bytes, std::size_t samples,
                                           const std::shared_ptr<Accelerator>& device = nullptr);
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

#include "loader/pool.h"

#include <utility>

namespace lowtide {

Pool::Pool(std::size_t buffer_bytes, std::size_t samples, std::size_t keep_buffers)
    : buffer_bytes_(buffer_bytes), samples_(samples) {
  keep(keep_buffers);
}

void Pool::keep(std::size_t buffers) {
  std::vector<std::unique_ptr<Buffer>> freed;
  Shelf& shelf = shelf_.get();
  const MutexLock lock(shelf.mutex);
  shelf.keep = buffers;
  shelf.free.reserve(buffers);
  while (shelf.alive > shelf.keep && !shelf.free.empty()) {
    freed.push_back(std::move(shelf.free.back()));
    shelf.free.pop_back();
    --shelf.alive;
  }
}

Batch Pool::take(bool prefault) {
  Shelf& shelf = shelf_.get();
  std::unique_ptr<Buffer> buffer;
  // The first batch is urgent: it is not prefaulted here, so that several reading threads fault in
  // its pages.
  bool first = false;
  {
    const MutexLock lock(shelf.mutex);
    first = shelf.alive == 0;
    if (!shelf.free.empty()) {
      buffer = std::move(shelf.free.back());
      shelf.free.pop_back();
    }
  }
  if (!buffer) {
    buffer = std::make_unique<Buffer>();
    buffer->memory = Memory(buffer_bytes_, prefault && !first, "a batch");
    buffer->samples.reserve(samples_);
    const MutexLock lock(shelf.mutex);
    ++shelf.alive;
  }
  buffer->samples.clear();
  buffer->offsets.clear();
  buffer->columns.clear();
  buffer->rows = buffer->step = buffer->epoch = 0;
  buffer->pool_ = shared_from_this();
  buffer->shelf_ = &shelf;
  return Buffer::lease(std::move(buffer));
}

void Pool::deliver(const Batch& batch) {
  Shelf& shelf = shelf_.get();
  const MutexLock lock(shelf.mutex);
  ++shelf.delivered;
  Buffer::of(batch).delivered_ = true;
}

void Pool::give_back(std::unique_ptr<Buffer> buffer) noexcept {
  Shelf* const shelf = shelf_.find();
  if (shelf == nullptr || buffer->shelf_ != shelf) return;  // of the parent; frees it
  const MutexLock lock(shelf->mutex);
  if (std::exchange(buffer->delivered_, false)) --shelf->delivered;
  if (shelf->alive <= shelf->keep && buffer->memory.size() == buffer_bytes_) {
    shelf->free.push_back(std::move(buffer));
  } else {
    --shelf->alive;
  }
}

std::uint64_t Pool::held_bytes() const {
  const Shelf& shelf = shelf_.get();
  const MutexLock lock(shelf.mutex);
  return shelf.delivered > 1 ? (shelf.delivered - 1) * std::uint64_t{buffer_bytes_} : 0;
}

std::uint64_t Pool::keep_free() {
  Shelf& shelf = shelf_.get();
  const MutexLock lock(shelf.mutex);
  shelf.keep = shelf.free.size();
  return shelf.keep * std::uint64_t{buffer_bytes_};
}

std::shared_ptr<Pool> SpareBuffers::take(std::size_t buffer_bytes, std::size_t samples) {
  std::shared_ptr<Pool> pool = exchange({});
  if (pool && pool->fits(buffer_bytes, samples)) return pool;
  if (pool) pool->keep(0);
  return std::make_shared<Pool>(buffer_bytes, samples, 1);
}

void SpareBuffers::give(std::shared_ptr<Pool> pool) noexcept {
  std::shared_ptr<Pool> unused = pool;
  try {
    Spare spare{.pool = pool,
                .share = std::make_unique<Share>(budget_, "spare buffers",
                                                 [pool](Share& share, std::uint64_t /*most*/) {
                                                   pool->keep(0);
                                                   (void)share.resize(0);
                                                 })};
    if (spare.share->resize(pool->keep_free())) unused = exchange(std::move(spare));
  } catch (const std::bad_alloc&) {
    // Without memory for a share, there is none for spare buffers.
  }
  if (unused) unused->keep(0);
}

std::shared_ptr<Pool> SpareBuffers::exchange(Spare spare) {
  {
    const MutexLock lock(mutex_);
    std::swap(spare, spare_);
  }
  return spare.pool;
}

}  // namespace lowtide

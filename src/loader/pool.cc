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

Batch Pool::take() {
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
    buffer->memory = Memory(buffer_bytes_, /*prefault=*/!first, "a batch");
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
  if (shelf->alive <= shelf->keep) {
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

}  // namespace lowtide

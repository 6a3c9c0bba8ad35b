#include "loader/pool.h"

#include <utility>

#include "lowtide/error.h"

namespace lowtide {

void Pool::Line::push(std::unique_ptr<Buffer> buffer) {
  Buffer* const last = buffer.get();
  ++size_;
  bytes_ += last->memory.size();
  (last_ == nullptr ? first_ : last_->next_) = std::move(buffer);
  last_ = last;
}

void Pool::Line::push_front(std::unique_ptr<Buffer> buffer) {
  ++size_;
  bytes_ += buffer->memory.size();
  if (last_ == nullptr) last_ = buffer.get();
  buffer->next_ = std::move(first_);
  first_ = std::move(buffer);
}

std::unique_ptr<Buffer> Pool::Line::pop() {
  if (first_ == nullptr) return nullptr;
  std::unique_ptr<Buffer> buffer = std::move(first_);
  first_ = std::move(buffer->next_);
  if (first_ == nullptr) last_ = nullptr;
  --size_;
  bytes_ -= buffer->memory.size();
  return buffer;
}

Pool::Pool(std::size_t buffer_bytes, std::size_t samples, std::size_t keep_buffers,
           std::shared_ptr<Accelerator> device)
    : buffer_bytes_(buffer_bytes), samples_(samples), device_(std::move(device)) {
  shelf_.get().device = device_.get();
  keep(keep_buffers);
}

Pool::Shelf::~Shelf() {
  if (device == nullptr) return;
  for (const std::unique_ptr<Buffer>& buffer : free) free_memory(device, buffer.get());
  while (const std::unique_ptr<Buffer> buffer = fenced.pop()) free_memory(device, buffer.get());
}

Memory Pool::make_memory(Accelerator* device, std::size_t bytes, bool prefault) {
  if (device == nullptr) return Memory(bytes, prefault, "a batch");
  Memory memory(bytes, false, "a pinned batch");
  if (!device->pin(memory.bytes())) throw NoMemory(bytes, "a pinned batch");
  return memory;
}

// Waits until the device has finished with a buffer.
void Pool::settle(Accelerator* device, Buffer* buffer) noexcept {
  if (buffer->fence_ == nullptr) return;
  device->wait(buffer->fence_);
  device->release(std::exchange(buffer->fence_, nullptr));
}

void Pool::free_memory(Accelerator* device, Buffer* buffer) noexcept {
  if (device != nullptr) {
    settle(device, buffer);
    if (buffer->memory.size() > 0) device->unpin(buffer->memory.bytes());
  }
  buffer->memory = {};
}

void Pool::keep(std::size_t buffers) {
  Shelf& shelf = shelf_.get();
  bool fewer = false;
  {
    const MutexLock lock(shelf.mutex);
    shelf.free.reserve(buffers);
    fewer = buffers < std::exchange(shelf.keep, buffers);
    if (shelf.alive <= shelf.keep || (shelf.free.empty() && shelf.fenced.size() == 0)) return;
  }
  trim(shelf, fewer);
}

// Frees buffers that are not in use until there are only `keep`. If not `wait`, those that the
// device may still read stay; the next call will find them.
void Pool::trim(Shelf& shelf, bool wait) noexcept {
  for (;;) {
    std::unique_ptr<Buffer> surplus;
    {
      const MutexLock lock(shelf.mutex);
      if (shelf.alive <= shelf.keep) return;
      if (!shelf.free.empty()) {
        surplus = std::move(shelf.free.back());
        shelf.free.pop_back();
      } else {
        surplus = shelf.fenced.pop();
      }
      if (!surplus) return;
    }
    const bool stays =
        !wait && surplus->fence_ != nullptr && !shelf.device->passed(surplus->fence_);
    if (!stays) free_memory(shelf.device, surplus.get());
    const MutexLock lock(shelf.mutex);
    if (stays) {
      shelf.fenced.push_front(std::move(surplus));
      return;
    }
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
  if (!buffer && shelf.device != nullptr) buffer = take_fenced(shelf);
  if (!buffer) {
    buffer = std::make_unique<Buffer>();
    buffer->samples.reserve(samples_);
    buffer->memory = make_memory(shelf.device, buffer_bytes_, prefault && !first);
    const MutexLock lock(shelf.mutex);
    ++shelf.alive;
  }
  buffer->samples.clear();
  buffer->sources.clear();
  buffer->offsets.clear();
  buffer->columns.clear();
  buffer->rows = buffer->step = buffer->epoch = 0;
  buffer->pool_ = shared_from_this();
  buffer->shelf_ = &shelf;
  return Buffer::lease(std::move(buffer));
}

// The buffer that has waited longest for the device, if the device has finished with it or another
// one may not be made. Otherwise nullptr.
std::unique_ptr<Buffer> Pool::take_fenced(Shelf& shelf) const {
  for (;;) {
    std::unique_ptr<Buffer> buffer;
    bool enough = false;
    {
      const MutexLock lock(shelf.mutex);
      buffer = shelf.fenced.pop();
      enough = shelf.alive >= shelf.keep;
    }
    if (!buffer) return nullptr;
    if (!enough && !shelf.device->passed(buffer->fence_)) {
      const MutexLock lock(shelf.mutex);
      shelf.fenced.push_front(std::move(buffer));
      return nullptr;
    }
    settle(shelf.device, buffer.get());
    if (buffer->memory.size() == buffer_bytes_) return buffer;
    free_memory(shelf.device, buffer.get());
    const MutexLock lock(shelf.mutex);
    --shelf.alive;
  }
}

void Pool::resize(const Batch& batch, std::size_t size_bytes) {
  Accelerator* const device = shelf_.get().device;
  Buffer& buffer = Buffer::of(batch);
  free_memory(device, &buffer);
  buffer.memory = make_memory(device, size_bytes, /*prefault=*/false);
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
  // Nobody can have started a copy of a batch that was not delivered.
  if (shelf->device != nullptr && buffer->delivered_) buffer->fence_ = shelf->device->fence();
  {
    const MutexLock lock(shelf->mutex);
    if (std::exchange(buffer->delivered_, false)) --shelf->delivered;
    if (buffer->fence_ != nullptr) {
      shelf->fenced.push(std::move(buffer));
      if (shelf->alive <= shelf->keep) return;
    } else if (shelf->alive <= shelf->keep && buffer->memory.size() == buffer_bytes_) {
      shelf->free.push_back(std::move(buffer));
      return;
    } else {
      --shelf->alive;
    }
  }
  if (buffer) {
    free_memory(shelf->device, buffer.get());
  } else {
    trim(*shelf, /*wait=*/false);
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
  shelf.keep = shelf.free.size() + shelf.fenced.size();
  shelf.free.reserve(shelf.keep);
  return shelf.free.size() * std::uint64_t{buffer_bytes_} + shelf.fenced.bytes();
}

std::shared_ptr<Pool> SpareBuffers::take(std::size_t buffer_bytes, std::size_t samples,
                                         const std::shared_ptr<Accelerator>& device) {
  std::shared_ptr<Pool> pool = exchange({});
  if (pool && pool->fits(buffer_bytes, samples, device)) return pool;
  if (pool) pool->keep(0);
  return std::make_shared<Pool>(buffer_bytes, samples, 1, device);
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

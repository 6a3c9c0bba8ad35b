#include "loader/pool.h"

#include <utility>

#include "os/process_id.h"

namespace lowtide {

Pool::Pool(std::size_t buffer_bytes, std::size_t samples, std::size_t keep)
    : buffer_bytes_(buffer_bytes), samples_(samples), pid_(process_id()), keep_(keep) {
  free_.reserve(keep);
}

void Pool::keep(std::size_t buffers) {
  std::vector<std::unique_ptr<Buffer>> freed;
  const std::lock_guard lock(mutex_);
  keep_ = buffers;
  free_.reserve(buffers);
  while (alive_ > keep_ && !free_.empty()) {
    freed.push_back(std::move(free_.back()));
    free_.pop_back();
    --alive_;
  }
}

Batch Pool::take() {
  std::unique_ptr<Buffer> buffer;
  // The first batch is urgent: it is not prefaulted here, so that several reading threads fault in
  // its pages.
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = alive_ == 0;
    if (!free_.empty()) {
      buffer = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!buffer) {
    buffer = std::make_unique<Buffer>();
    buffer->memory = Memory(buffer_bytes_, /*prefault=*/!first, "a batch");
    buffer->samples.reserve(samples_);
    const std::lock_guard lock(mutex_);
    ++alive_;
  }
  buffer->samples.clear();
  buffer->offsets.clear();
  buffer->columns.clear();
  buffer->rows = buffer->step = buffer->epoch = 0;
  buffer->pool_ = shared_from_this();
  return Buffer::lease(std::move(buffer));
}

void Pool::deliver(const Batch& batch) {
  const std::lock_guard lock(mutex_);
  ++delivered_;
  Buffer::of(batch).delivered_ = true;
}

void Pool::give_back(std::unique_ptr<Buffer> buffer) noexcept {
  if (process_id() != pid_) return;  // which frees it
  const std::lock_guard lock(mutex_);
  if (std::exchange(buffer->delivered_, false)) --delivered_;
  if (alive_ <= keep_) {
    free_.push_back(std::move(buffer));
  } else {
    --alive_;
  }
}

std::uint64_t Pool::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return delivered_ > 1 ? (delivered_ - 1) * std::uint64_t{buffer_bytes_} : 0;
}

}  // namespace lowtide

#include "loader/pool.h"

#include <utility>

#include "os/limits.h"

namespace lowtide {

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    give_back();
    pool_ = std::move(other.pool_);
    buffer_ = std::move(other.buffer_);
    delivered_ = other.delivered_;
    step = other.step;
    epoch = other.epoch;
  }
  return *this;
}

void Lease::deliver() {
  const std::lock_guard lock(pool_->mutex_);
  ++pool_->delivered_;
  delivered_ = true;
}

void Lease::give_back() noexcept {
  if (!buffer_) return;
  if (process_id() == pool_->pid_) {
    pool_->give_back(std::move(buffer_), delivered_);
  } else {
    buffer_.reset();  // in a forked child, where the pool's lock may be held forever
  }
}

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

Lease Pool::take() {
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
  return Lease(shared_from_this(), std::move(buffer));
}

void Pool::give_back(std::unique_ptr<Buffer> buffer, bool delivered) noexcept {
  const std::lock_guard lock(mutex_);
  if (delivered) --delivered_;
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

#include <atomic>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/clock.h"
#include "face/array_impl.h"
#include "loader/loader.h"
#include "loader/room.h"
#include "lowtide/array.h"
#include "order/order.h"
#include "os/limits.h"

namespace lowtide {

class Batch::Impl {
 public:
  explicit Impl(Lease lent) : lease(std::move(lent)) {}
  Lease lease;
};

Batch::Batch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;
Batch::~Batch() = default;

std::span<const std::uint64_t> Batch::samples() const {
  return impl_->lease->samples;
}
std::byte* Batch::data() const {
  return impl_->lease->memory.data();
}
std::uint64_t Batch::step() const {
  return impl_->lease.step;
}
std::uint64_t Batch::epoch() const {
  return impl_->lease.epoch;
}

class Batches::Impl {
 public:
  Impl(std::shared_ptr<Array::Impl> array, const BatchOptions& options)
      : array_(std::move(array)), options_(options), pid_(process_id()), source_(array_->source()) {
    schedule_ = {.size = 0,
                 .epoch = options.epoch,
                 .batch_size = options.batch_size,
                 .rank = options.rank,
                 .world_size = options.world_size,
                 .drop_last = options.drop_last};
    if (schedule_.batch_size == 0) throw std::invalid_argument("batch_size: must be at least 1");
    if (schedule_.world_size == 0) throw std::invalid_argument("world_size: must be at least 1");
    if (schedule_.rank >= schedule_.world_size) {
      throw std::invalid_argument("rank: " + std::to_string(schedule_.rank) +
                                  " is not below world_size " +
                                  std::to_string(schedule_.world_size));
    }
    order_ = make_order();
    schedule_.size = order_->size();
    steps_ = schedule_.steps();
    start();
  }

  ~Impl() {
    if (process_id() != pid_) leave_to_parent();
  }

  std::optional<Batch> next(std::chrono::milliseconds timeout, bool* timed_out) {
    *timed_out = false;
    if (process_id() != pid_) {
      leave_to_parent();
      source_ = array_->closed() ? std::make_shared<Source>(array_->description) : array_->source();
      order_ = make_order();
      pid_ = process_id();
    }
    if (!loader_) {
      if (position_ == steps_ || cancelled_) return std::nullopt;
      start();  // in a forked child, or where a seek could not
    }
    const std::uint64_t before = now_ns();
    std::optional<Lease> lease = loader_->next(timeout, timed_out);
    const std::uint64_t waited = now_ns() - before;
    if (!lease) {
      // What it claimed is free for others as soon as the epoch has ended.
      if (!*timed_out && position_ == steps_) end();
      return std::nullopt;
    }
    source_->count_delivered((*lease)->samples.size() * source_->rows().sample_bytes(), waited);
    ++position_;
    return Batch(std::make_unique<Batch::Impl>(std::move(*lease)));
  }

  void seek(std::uint64_t step) {
    if (step > steps_) {
      throw std::out_of_range("seek: step " + std::to_string(step) + " is beyond the " +
                              std::to_string(steps_) + " of the epoch");
    }
    if (process_id() == pid_) end();
    position_ = step;
    if (process_id() == pid_) start();
  }

  void cancel() noexcept {
    if (process_id() != pid_) return;
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (loader_) loader_->cancel();
  }

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::uint64_t position() const { return position_; }

 private:
  [[nodiscard]] std::unique_ptr<Order> make_order() const {
    const std::uint64_t rows = source_->rows().size();
    if (options_.rows) return make_explicit(*options_.rows, rows);
    if (options_.order == OrderKind::shuffle) return make_shuffle(rows, options_.seed);
    return make_sequential(rows);
  }

  void start() {
    source_->files().verify_open();
    engine_ = source_->engine_for(least_room(source_->rows(), schedule_));
    auto loader = std::make_unique<Loader>(
        LoaderInputs{source_->rows(), *order_, *engine_, source_->budget()}, schedule_, position_);
    source_->watch(loader->pool());
    const std::lock_guard lock(mutex_);
    if (cancelled_) loader->cancel();
    loader_ = std::move(loader);
  }

  void end() {
    std::unique_ptr<Loader> ended;
    {
      const std::lock_guard lock(mutex_);
      ended = std::move(loader_);
    }
    ended.reset();
    engine_.reset();
  }

  // Its threads do not exist in this process: nothing of it can be ended here.
  void leave_to_parent() {
    new (&mutex_) std::mutex;
    (void)loader_.release();
    (void)order_.release();
    if (engine_) (void)new std::shared_ptr<Engine>(std::move(engine_));
    if (source_) (void)new std::shared_ptr<Source>(std::move(source_));
  }

  std::shared_ptr<Array::Impl> array_;
  const BatchOptions options_;
  int pid_;
  std::shared_ptr<Source> source_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Order> order_;
  Schedule schedule_;
  std::uint64_t steps_ = 0;
  std::uint64_t position_ = 0;
  std::mutex mutex_;  // loader_ and cancelled_: cancel comes from another thread
  std::atomic<bool> cancelled_ = false;
  std::unique_ptr<Loader> loader_;  // nullptr: the epoch has ended
};

Batches::Batches(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Batches::Batches(Batches&&) noexcept = default;
Batches& Batches::operator=(Batches&&) noexcept = default;
Batches::~Batches() = default;

std::optional<Batch> Batches::next() {
  for (;;) {
    bool timed_out = false;
    std::optional<Batch> batch = impl_->next(std::chrono::hours(1), &timed_out);
    if (!timed_out) return batch;
  }
}

std::optional<Batch> Batches::next_for(std::chrono::milliseconds timeout, bool* timed_out) {
  return impl_->next(timeout, timed_out);
}

std::uint64_t Batches::steps() const {
  return impl_->steps();
}
std::uint64_t Batches::position() const {
  return impl_->position();
}
void Batches::seek(std::uint64_t step) {
  impl_->seek(step);
}
void Batches::cancel() noexcept {
  impl_->cancel();
}

Batches Array::batches(const BatchOptions& options) const {
  return Batches(std::make_unique<Batches::Impl>(impl_, options));
}

}  // namespace lowtide

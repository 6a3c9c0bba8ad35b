// per_process.h - the one rule for forks: what belongs to one process is in a PerProcess.
//
// The child of a fork has only the thread that forked. Another thread may have held a lock or been
// in the middle of a change; in the child, nothing will release that lock or finish that change. So
// a child neither uses nor destroys what the parent made. It deliberately abandons it and makes its
// own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace lowtide {

// Counts the forks that led to this process. No ancestor has the same number, whereas the kernel
// reuses process ids. The first call may throw std::bad_alloc. Any thread; no system call.
[[nodiscard]] std::uint64_t process_generation();

// Calls `before` in a thread that is about to fork, then one of the others: for state that the
// child continues instead of making its own, so that a lock must be free there. The registration is
// permanent. Throws std::bad_alloc.
void at_fork(void (*before)(), void (*in_parent)(), void (*in_child)());

// The T of this process. T contains everything that belongs together, with the mutex that guards
// it. The memory of the parent's T stays allocated until the child ends. Any thread, without a
// lock.
template <typename T>
class PerProcess {
 public:
  using Make = std::function<std::unique_ptr<T>()>;

  // `make` is called by get(). Threads that call get() at the same time may each call it; all but
  // one of the results are destroyed. So it should be cheap and have no effect beyond its result.
  explicit PerProcess(Make make = [] { return std::make_unique<T>(); }) : make_(std::move(make)) {
    (void)process_generation();  // registers, so that it cannot throw in the destructor
  }
  // Destroys the T that this process made, if any.
  ~PerProcess() {
    Made* const last = made_.load(std::memory_order_acquire);
    if (last != nullptr && last->generation == process_generation()) delete last;
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  // Makes it if this process has none. Throws what `make` throws; the next call tries again.
  [[nodiscard]] T& get() const {
    const std::uint64_t generation = process_generation();
    Made* made = made_.load(std::memory_order_acquire);
    if (made != nullptr && made->generation == generation) return *made->value;
    auto fresh = std::make_unique<Made>(Made{generation, make_()});
    // Only a thread of this process can have stored another one since, so a failure finds its T.
    if (!made_.compare_exchange_strong(made, fresh.get(), std::memory_order_acq_rel)) {
      return *made->value;
    }
    return *fresh.release()->value;
  }

  // nullptr if this process has none, for example in a child that has not called get().
  [[nodiscard]] T* find() const noexcept {
    const Made* const made = made_.load(std::memory_order_acquire);
    return made != nullptr && made->generation == process_generation() ? made->value.get()
                                                                       : nullptr;
  }

 private:
  struct Made {
    std::uint64_t generation;
    std::unique_ptr<T> value;
  };
  const Make make_;
  mutable std::atomic<Made*> made_{nullptr};
};

}  // namespace lowtide

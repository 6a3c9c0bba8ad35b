// watch.h - how a task reports what it has done, and hears that it shall end.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace lowtide {

// Ends a task whose caller does not want it any more. Never leaves the room.
class Stopped : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "stopped"; }
};

// Any thread.
class JobWatch {
 public:
  // Throws Stopped after stop().
  void advance(std::uint64_t bytes) {
    done_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (stopped_.load(std::memory_order_relaxed)) throw Stopped();
  }
  void stop() noexcept { stopped_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t done_bytes() const {
    return done_bytes_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> done_bytes_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace lowtide

// fake_accelerator.h - a device that starts copies at once and ends them late: after random delays,
// or when a test says so. It remembers every byte that it was told to copy.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "core/accelerator.h"

namespace lowtide {

class FakeAccelerator final : public Accelerator {
 public:
  explicit FakeAccelerator(unsigned seed = 1, unsigned most_delay_us = 0)
      : most_delay_us_(most_delay_us), random_(seed), worker_([this] { run(); }) {}
  ~FakeAccelerator() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  struct Counts {
    std::size_t pins = 0, unpins = 0, fences = 0, waits = 0, copies = 0;
    std::size_t pinned_bytes = 0, most_pinned_bytes = 0;
    std::size_t open_fences = 0;      // not released yet
    std::size_t torn = 0;             // copies whose bytes changed before they ended
    std::size_t unpinned_early = 0;   // while a copy of it was under way
    std::size_t pinned_wrongly = 0;   // twice, or unpinned without being pinned
    std::size_t copied_unpinned = 0;  // copies from memory that is not pinned
  };
  [[nodiscard]] Counts counts() {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  // Until release_copies() no copy ends.
  void hold_copies() {
    const std::lock_guard lock(mutex_);
    holding_ = true;
  }
  void release_copies() {
    const std::lock_guard lock(mutex_);
    holding_ = false;
    changed_.notify_all();
  }
  // Ends the oldest copy, although they are held.
  void end_one() {
    std::unique_lock lock(mutex_);
    ++allowed_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return allowed_ == 0; });
  }
  // Until somebody waits for a fence.
  void await_waits(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return counts_.waits >= count; });
  }

  // Starts a copy of these bytes. Returns at once.
  void copy(std::span<const std::byte> from) {
    const std::lock_guard lock(mutex_);
    ++counts_.copies;
    if (!is_pinned(from)) ++counts_.copied_unpinned;
    pending_.push_back({from, {from.begin(), from.end()}});
    changed_.notify_all();
  }

  bool pin(std::span<std::byte> memory) noexcept override {
    const std::lock_guard lock(mutex_);
    if (refuses_) return false;
    ++counts_.pins;
    if (!pinned_.emplace(memory.data(), memory.size()).second) ++counts_.pinned_wrongly;
    counts_.pinned_bytes += memory.size();
    counts_.most_pinned_bytes = std::max(counts_.most_pinned_bytes, counts_.pinned_bytes);
    return true;
  }
  void unpin(std::span<std::byte> memory) noexcept override {
    const std::lock_guard lock(mutex_);
    ++counts_.unpins;
    const auto known = pinned_.find(memory.data());
    if (known == pinned_.end() || known->second != memory.size()) ++counts_.pinned_wrongly;
    if (known != pinned_.end()) pinned_.erase(known);
    counts_.pinned_bytes -= memory.size();
    for (const Copy& copy : pending_) {
      const bool apart = copy.from.data() >= memory.data() + memory.size() ||
                         memory.data() >= copy.from.data() + copy.from.size();
      if (!apart) ++counts_.unpinned_early;
    }
  }
  Fence fence() noexcept override {
    const std::lock_guard lock(mutex_);
    if (!fenced_) return nullptr;
    ++counts_.fences;
    ++counts_.open_fences;
    return new std::size_t(counts_.copies);
  }
  bool passed(Fence fence) noexcept override {
    const std::lock_guard lock(mutex_);
    return ended_ >= *static_cast<std::size_t*>(fence);
  }
  void wait(Fence fence) noexcept override {
    std::unique_lock lock(mutex_);
    ++counts_.waits;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ended_ >= *static_cast<std::size_t*>(fence); });
  }
  void release(Fence fence) noexcept override {
    const std::lock_guard lock(mutex_);
    --counts_.open_fences;
    delete static_cast<std::size_t*>(fence);
  }

  bool fenced_ = true;    // set before use
  bool refuses_ = false;  // to pin; likewise

 private:
  struct Copy {
    std::span<const std::byte> from;
    std::vector<std::byte> bytes;  // when it was started
  };
  [[nodiscard]] bool is_pinned(std::span<const std::byte> bytes) const {
    auto after = pinned_.upper_bound(bytes.data());
    if (after == pinned_.begin()) return false;
    const auto& [start, size] = *--after;
    return bytes.data() + bytes.size() <= start + size;
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto may_end = [&] { return !pending_.empty() && (!holding_ || allowed_ > 0); };
      changed_.wait(lock, [&] { return stopping_ || may_end(); });
      if (!may_end()) return;
      const auto delay = std::chrono::microseconds(random_() % (most_delay_us_ + 1));
      lock.unlock();
      std::this_thread::sleep_for(delay);
      lock.lock();
      const Copy& copy = pending_.front();  // others are appended only
      const bool same = std::memcmp(copy.from.data(), copy.bytes.data(), copy.bytes.size()) == 0;
      if (!same) ++counts_.torn;
      pending_.pop_front();
      ++ended_;
      if (allowed_ > 0) --allowed_;
      changed_.notify_all();
    }
  }

  const unsigned most_delay_us_;
  std::mt19937 random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Counts counts_;
  std::map<const std::byte*, std::size_t> pinned_;
  std::deque<Copy> pending_;
  std::size_t ended_ = 0;
  std::size_t allowed_ = 0;
  bool holding_ = false, stopping_ = false;
  std::thread worker_;
};

}  // namespace lowtide

// fake_engine.h - an engine over bytes in memory that ends its sets when, in which order and how a
// test wants.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace lowtide {

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(std::vector<std::string> held)
      : held_(std::move(held)), worker_([this] { run(); }) {}
  ~FakeEngine() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  // Until release() no set ends.
  void hold() {
    const std::lock_guard lock(mutex_);
    holding_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    holding_ = false;
    changed_.notify_all();
  }
  // Waits until so many sets have been submitted since the start.
  void wait_for_sets(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return submitted_ >= count; });
  }
  [[nodiscard]] std::size_t submitted() {
    const std::lock_guard lock(mutex_);
    return submitted_;
  }
  // Reads that touch this byte of shard 0 fail so.
  void fail_at(std::uint64_t offset_bytes, const Outcome& outcome) {
    const std::lock_guard lock(mutex_);
    trouble_ = {.fails = true, .offset_bytes = offset_bytes, .outcome = outcome};
  }
  void set_prospect(const Prospect& prospect) {
    const std::lock_guard lock(mutex_);
    prospect_ = prospect;
  }

  void submit(ReadSet& set) noexcept override {
    if (inline_) {
      set.done(serve(set));
      return;
    }
    const std::lock_guard lock(mutex_);
    ++submitted_;
    waiting_.push_back(&set);
    changed_.notify_all();
  }
  Prospect prospect() noexcept override {
    const std::lock_guard lock(mutex_);
    return prospect_;
  }
  void expect_all() noexcept override { ++expected_all_; }
  Traffic traffic() const noexcept override { return {}; }
  std::string name() const override { return "fake"; }
  std::string reason() const override { return "a test"; }

  bool inline_ = false;  // ends sets inside submit; set before use
  std::atomic<int> expected_all_{0};
  std::atomic<std::size_t> most_reads_{0};

 private:
  struct Trouble {
    bool fails = false;
    std::uint64_t offset_bytes = 0;
    Outcome outcome = {};
  };
  Trouble current_trouble() {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }

  Outcome serve(const ReadSet& set) {
    Outcome outcome;
    if (set.cancelled()) {
      outcome.cancelled = true;
      return outcome;
    }
    most_reads_ = std::max(most_reads_.load(), set.reads.size());
    const Trouble trouble = current_trouble();
    for (std::size_t i = 0; i < set.reads.size(); ++i) {
      const Extent& from = set.reads[i].from;
      if (trouble.fails && from.shard == 0 && from.offset_bytes <= trouble.offset_bytes &&
          trouble.offset_bytes < from.end_bytes()) {
        outcome = trouble.outcome;
        outcome.read = static_cast<std::uint32_t>(i);
        return outcome;
      }
      std::memcpy(set.reads[i].into, held_.at(from.shard).data() + from.offset_bytes,
                  from.size_bytes);
    }
    return outcome;
  }

  // Ends a random one of the sets that wait, so late ones overtake early ones.
  void run() {
    std::mt19937 random(11);
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopping_ || (!waiting_.empty() && !holding_); });
      if (waiting_.empty() || holding_) return;
      const auto which = static_cast<std::ptrdiff_t>(random() % waiting_.size());
      ReadSet* set = waiting_[static_cast<std::size_t>(which)];
      waiting_.erase(waiting_.begin() + which);
      lock.unlock();
      std::this_thread::yield();
      set->done(serve(*set));
      lock.lock();
    }
  }

  const std::vector<std::string> held_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ReadSet*> waiting_;
  std::size_t submitted_ = 0;
  bool holding_ = false, stopping_ = false;
  Trouble trouble_;
  Prospect prospect_{.resident = true, .gap_bytes = 0};
  std::thread worker_;
};

}  // namespace lowtide

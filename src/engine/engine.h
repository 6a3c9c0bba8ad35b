// engine.h - HOW bytes are fetched: a set of Reads goes in, bytes come out, and an Outcome reports
// the result.
//
// Alignment, bounce buffers, sorting, merging, splitting and retries stay inside. Every engine
// returns the bytes that a plain pread would return. An Engine is opened on the calling thread and
// may throw then; once open it never throws, and errors are data.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/budget.h"
#include "core/extent.h"
#include "core/mutex.h"
#include "http/fault.h"
#include "lowtide/interrupt.h"
#include "lowtide/options.h"

namespace lowtide {

class Files;

// The result of one set of reads. A completion queue has no caller to throw to, so the error is
// data here; the loader turns it into an exception with path and offset.
struct Outcome {
  int err = 0;             // errno of the first failure; 0 with `ended`: the file ended early
  bool ended = false;      // a read reached the end of the file
  bool cancelled = false;  // abandoned because ReadSet::cancel() was called
  bool no_thread = false;  // `err` says why no thread could be started: nothing was read
  std::uint32_t read = 0;  // the index in the set of the read that failed
  std::uint64_t found_bytes = 0;  // with `ended`: where the file ends
  HttpResult http = {};           // for an object on a server: what it answered

  [[nodiscard]] bool ok() const { return err == 0 && !ended && !cancelled; }
};

// One set of reads in progress. The caller owns it, its reads and their targets, and must not touch
// any of them until done() is called. Reads may be in any order, overlap and repeat.
class ReadSet {
 public:
  virtual ~ReadSet() = default;

  // Called exactly once, on a thread of the engine, or inside submit if there was nothing to wait
  // for. Must not block or throw; may submit further sets.
  virtual void done(const Outcome& outcome) noexcept = 0;

  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] virtual bool cancelled() const noexcept {
    return cancelled_.load(std::memory_order_relaxed);
  }

  std::span<const Read> reads;

 private:
  std::atomic<bool> cancelled_{false};
};

// Counters since the engine was opened. They are relaxed atomics, so values that are read while
// reads are in flight may lag a little.
struct Traffic {
  std::uint64_t bytes_read = 0;
  std::uint64_t reads = 0;
  std::uint64_t merged = 0;
};

// What the loader needs to know to decide how far ahead it pays to look.
struct Prospect {
  bool resident = false;        // upcoming bytes are in memory: looking far ahead gains nothing
  bool held = false;            // the engine holds them, so the order of reads does not matter
  bool far = false;             // most bytes come from servers
  std::uint32_t gap_bytes = 0;  // neighbours on a disk closer than this are fetched together
  // The same for sorted reads of cached bytes, by their average distance.
  std::uint32_t cached_distance_bytes = 0;
};

class Engine {
 public:
  static constexpr std::size_t kMaxReads = 16384;  // per set

  virtual ~Engine() = default;  // ends its threads; every set must be done

  // Requires 0 < set.reads.size() <= kMaxReads. Any thread.
  virtual void submit(ReadSet& set) noexcept = 0;

  // Submits and waits; reads on the calling thread if that is faster. Any number of reads. Any
  // thread.
  [[nodiscard]] virtual Outcome read(std::span<const Read> reads) noexcept;

  // Announces that most of the data is about to be read, perhaps more than once.
  virtual void expect_all() noexcept {}

  [[nodiscard]] virtual Prospect prospect() noexcept = 0;
  [[nodiscard]] virtual Traffic traffic() const noexcept = 0;
  // Whether the engine holds all of the data, so that destroying it frees that much.
  [[nodiscard]] virtual bool holds_data() const noexcept { return false; }
  // The current values of Stats::engine and Stats::engine_reason.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string reason() const = 0;
};

inline constexpr std::chrono::milliseconds kAskHook{50};

// A set that its owner can wait for.
class Waiter final : public ReadSet {
 public:
  void done(const Outcome& outcome) noexcept override {
    const MutexLock lock(mutex_);
    outcome_ = outcome;
    finished_ = true;
    changed_.notify_one();
  }
  // Call it once per submission. Cancels the set if the WaitHook of the calling thread asks to
  // stop.
  [[nodiscard]] Outcome wait() {
    MutexLock lock(mutex_);
    WaitHook* const hook = WaitHook::current();
    while (!finished_) {
      if (hook == nullptr) {
        changed_.wait(mutex_);
      } else if (!changed_.wait_until(mutex_, CondVar::Clock::now() + kAskHook)) {
        lock.unlock();
        if (hook->stop()) cancel();
        lock.lock();
      }
    }
    finished_ = false;
    return outcome_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool finished_ LOWTIDE_GUARDED_BY(mutex_) = false;
  Outcome outcome_ LOWTIDE_GUARDED_BY(mutex_);
};

// What an engine other than memory claims for its buffers under a budget of this size.
[[nodiscard]] Budget::Entry engine_buffers(std::uint64_t budget_bytes);

// options.cache is keep or drop: the caller has decided. With `allow_memory` the automatic engine
// may hold all of the data if it fits. Throws IoError for an engine that was asked for by name and
// is not available here, and std::invalid_argument if the budget is too small for it.
[[nodiscard]] std::unique_ptr<Engine> open_engine(std::shared_ptr<Files> files,
                                                  const ReadOptions& options, Budget& budget,
                                                  bool allow_memory = true);

}  // namespace lowtide

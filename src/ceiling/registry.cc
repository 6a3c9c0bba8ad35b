#include "ceiling/registry.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <optional>
#include <utility>

#include "ceiling/count_rule.h"
#include "core/clock.h"
#include "os/per_process.h"
#include "os/quiet_thread.h"
#include "system/mapped_pages.h"

namespace lowtide {
namespace {

constexpr std::chrono::milliseconds kBlindWait{20};  // between two counts if statm is not readable

}  // namespace

Registry::Registry() {
  at_fork(&before_fork, &after_fork, &after_fork);
}

Registry& Registry::of_process() {
  static Registry* const one = new Registry;  // leaked: a thread may use it while the process exits
  return *one;
}

// Held across the fork, so that the child never inherits a list or a map in the middle of a change.
void Registry::before_fork() {
  of_process().mutex_.lock();
}

void Registry::after_fork() {
  of_process().mutex_.unlock();
}

void Registry::add(TrimmedMap& map) {
  const MutexLock lock(mutex_);
  // Both may throw and come first: a map in the list without a thread would never be trimmed.
  maps_.reserve(maps_.size() + 1);
  if (!running_locked()) start_locked();
  maps_.push_back(&map);
  ++changes_;
  trimmer_.get().changed.notify_all();
}

// Taking the lock is what waits for a trim in progress.
void Registry::remove(TrimmedMap& map) noexcept {
  const MutexLock lock(mutex_);
  if (std::erase(maps_, &map) == 0) return;
  ++changes_;
}

// The child of a fork has maps and no thread. Every use of a map comes through here, so the thread
// is started before the map can grow.
Mutex& Registry::mutex() noexcept {
  const MutexLock lock(mutex_);
  if (stopped_ || running_locked() || maps_.empty()) return mutex_;
  try {
    start_locked();
  } catch (const std::exception&) {  // without a thread, announced parts are still trimmed
  }
  return mutex_;
}

bool Registry::running_locked() const noexcept {
  const Trimmer* const trimmer = trimmer_.find();
  return trimmer != nullptr && trimmer->thread.joinable();
}

void Registry::start_locked() {
  stopped_ = false;
  Trimmer& trimmer = trimmer_.get();
  trimmer.thread = start_quiet_thread("the thread that trims maps",
                                      [this, &trimmer, stops = stops_] { run(trimmer, stops); });
}

// Joins without the lock, because the thread needs it to finish. A thread that add() starts in the
// meantime has the new count of stops, so this one does not end it.
void Registry::stop() noexcept {
  std::thread ending;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    ++stops_;
    Trimmer* const trimmer = trimmer_.find();
    if (trimmer == nullptr) return;
    ending = std::move(trimmer->thread);
    trimmer->changed.notify_all();
  }
  if (ending.joinable()) ending.join();
}

void Registry::resume() noexcept {
  {
    const MutexLock held(mutex_);
    stopped_ = false;
  }
  (void)mutex();  // starts the thread if there are maps
}

bool Registry::running() const {
  const MutexLock lock(mutex_);
  return running_locked();
}

void Registry::run(Trimmer& trimmer, std::uint64_t stops) {
  const MutexLock lock(mutex_);
  CountRule rule;
  std::optional<std::uint64_t> counted_at;  // the value of changes_ at the last count
  while (stops == stops_) {
    if (maps_.empty()) {
      trimmer.changed.wait(mutex_);
      continue;
    }
    // One read of statm for all maps; counting the pages of each costs far more, so the rule
    // decides from this whether a count is due.
    const std::optional<std::uint64_t> file_bytes = resident_file_bytes();
    const std::uint64_t now = now_ns();
    if (!file_bytes || counted_at != changes_ || rule.look(*file_bytes, now)) {
      account_locked();
      counted_at = changes_;
      // The process's growth could be in any map, so the one with the least room decides.
      std::uint64_t spare_bytes = std::numeric_limits<std::uint64_t>::max();
      std::uint64_t limit_bytes = spare_bytes;
      for (const TrimmedMap* const map : maps_) {
        spare_bytes = std::min(spare_bytes, map->spare_bytes());
        limit_bytes = std::min(limit_bytes, map->limit_bytes());
      }
      // Read again: counting may have trimmed, and growth is measured from here.
      rule.counted(file_bytes.value_or(0), resident_file_bytes().value_or(0), spare_bytes,
                   limit_bytes, now);
    }
    const auto wait = file_bytes ? std::chrono::nanoseconds(rule.wait_ns()) : kBlindWait;
    const std::uint64_t before = changes_;
    const CondVar::Clock::time_point until = CondVar::Clock::now() + wait;
    // The lock is free while this waits, so maps can be added and removed.
    while (stops == stops_ && changes_ == before && trimmer.changed.wait_until(mutex_, until)) {
    }
  }
}

void Registry::account_locked() {
  PageCounter counter;  // one for all, because it opens files of /proc
  for (TrimmedMap* const map : maps_) map->account(counter);
}

}  // namespace lowtide

#include "ceiling/registry.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "ceiling/pace.h"
#include "core/clock.h"
#include "os/mapped_pages.h"
#include "os/quiet_thread.h"

namespace lowtide {
namespace {

constexpr std::chrono::milliseconds kBlindWait{20};  // between two counts where statm is not there

}  // namespace

Registry::Registry() {
  at_fork(&before_fork, &after_fork, &in_child);
}

Registry& Registry::of_process() {
  static Registry* const one = new Registry;  // a thread may still use it while the process ends
  return *one;
}

void Registry::before_fork() {
  of_process().mutex_.lock();
}

void Registry::after_fork() {
  of_process().mutex_.unlock();
}

// The thread is the parent's; neither it nor what it waits for can be ended here.
void Registry::in_child() {
  Registry& here = of_process();
  new (&here.thread_) std::thread;
  new (&here.changed_) std::condition_variable;
  here.mutex_.unlock();
}

void Registry::add(TrimmedMap& map) {
  const std::lock_guard lock(mutex_);
  maps_.reserve(maps_.size() + 1);
  if (!thread_.joinable()) start_locked();
  maps_.push_back(&map);
  ++changes_;
  changed_.notify_all();
}

void Registry::remove(TrimmedMap& map) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::erase(maps_, &map) == 0) return;
  ++changes_;
}

std::unique_lock<std::mutex> Registry::lock() noexcept {
  std::unique_lock held(mutex_);
  if (stopped_ || thread_.joinable() || maps_.empty()) return held;
  try {
    start_locked();
  } catch (const std::exception&) {  // parts that are announced are trimmed without it
  }
  return held;
}

void Registry::start_locked() {
  stopped_ = false;
  thread_ = start_quiet_thread("the thread that trims maps", [this, turn = turn_] { run(turn); });
}

void Registry::stop() noexcept {
  std::thread ending;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    ++turn_;
    ending = std::move(thread_);
  }
  changed_.notify_all();
  if (ending.joinable()) ending.join();
}

void Registry::resume() noexcept {
  {
    const std::lock_guard held(mutex_);
    stopped_ = false;
  }
  (void)lock();
}

bool Registry::running() const {
  const std::lock_guard lock(mutex_);
  return thread_.joinable();
}

void Registry::run(std::uint64_t turn) {
  std::unique_lock lock(mutex_);
  Pace pace;
  std::optional<std::uint64_t> counted_at;  // changes_ when the maps were counted last
  while (turn == turn_) {
    if (maps_.empty()) {
      changed_.wait(lock, [&] { return turn != turn_ || !maps_.empty(); });
      continue;
    }
    const std::optional<std::uint64_t> file_bytes = resident_file_bytes();
    const std::uint64_t now = now_ns();
    if (!file_bytes || counted_at != changes_ || pace.look(*file_bytes, now)) {
      account_locked();
      counted_at = changes_;
      const auto least = [&](auto of) {
        std::uint64_t found = std::numeric_limits<std::uint64_t>::max();
        for (const TrimmedMap* map : maps_) found = std::min(found, of(*map));
        return found;
      };
      pace.counted(resident_file_bytes().value_or(0),
                   least([](const TrimmedMap& map) { return map.room_bytes(); }),
                   least([](const TrimmedMap& map) { return map.limit_bytes(); }), now);
    }
    const auto wait = file_bytes ? std::chrono::nanoseconds(pace.wait_ns()) : kBlindWait;
    const std::uint64_t before = changes_;
    changed_.wait_for(lock, wait, [&] { return turn != turn_ || changes_ != before; });
  }
}

void Registry::account_locked() {
  PageCounter counter;
  for (TrimmedMap* const map : maps_) map->account(counter);
}

}  // namespace lowtide

// shim.h - the shim's state inside one process, shared by its hooks and its trimmer.
//
// One static instance, usable before any constructor has run. The table is used only under the
// lock. A trim holds the lock from checking a range to releasing it. So when munmap, mremap or a
// fixed mmap returns, its range is out of the table, and a trim in progress has been waited for:
// the addresses can safely be given to another map.
#pragma once

#include <atomic>
#include <cstdint>

#include "ceiling/shim/lock.h"
#include "ceiling/shim/page.h"
#include "ceiling/shim/settings.h"
#include "ceiling/shim/table.h"

namespace lowtide::ceiling {

class Shim {
 public:
  // Registers with guard. Without settings in the environment it stays off and hooks pass through.
  void start(char** environment);
  [[nodiscard]] bool on() const { return on_.load(std::memory_order_acquire); }
  // If false, a hook need not take the lock.
  [[nodiscard]] bool covers_any() const { return entries_.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] Page& page() { return *page_; }
  [[nodiscard]] Slot& slot() { return *slot_; }

  void cover(const Entry& entry);  // and starts the trimmer if none runs
  void uncover(bare::Range range);
  // As in Table, for calls that may fail.
  [[nodiscard]] bool set_aside(bare::Range range);
  void put_back(bare::Range range);
  void drop_aside(bare::Range range);
  void make_writable(bare::Range range);
  void end();  // the process ends and no longer holds anything

  // Call before the process sets a seccomp filter: when this returns, the trimmer has ended and no
  // hook makes a system call of its own. False: there is nothing to step back from, and neither of
  // the next two may be called. Otherwise call one of them: come_again() if the filter was refused,
  // stay_back() if it is in force.
  [[nodiscard]] bool step_back();
  void come_again();
  void stay_back();  // makes no system call

  // The bytes of all processes, including this one, and the number of processes that hold any.
  struct Sum {
    std::uint64_t bytes = 0;
    std::uint64_t processes = 0;
  };
  [[nodiscard]] Sum sum();

  // While an instance lives, step_back() waits.
  class Inside {
   public:
    explicit Inside(Shim& whose) : shim_(whose) { shim_.inside_.fetch_add(1); }
    ~Inside() { shim_.inside_.fetch_sub(1); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Shim& shim_;
  };

  // Holds the lock on the table. False: the shim has stepped back, and the table must not be
  // touched.
  class Held {
   public:
    explicit Held(Shim& whose);
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    explicit operator bool() const { return held_; }
    [[nodiscard]] Table& table() { return shim_.table_; }
    // Every change goes through here, so that a child forked in the middle of one knows it.
    template <typename Change>
    auto change(Change what) {
      shim_.changing_.store(true, std::memory_order_release);
      const auto result = what(shim_.table_);
      shim_.changing_.store(false, std::memory_order_release);
      return result;
    }

   private:
    Inside inside_;
    Shim& shim_;
    bool held_;
    std::uint64_t signals_ = 0;
  };

  // The trimmer sleeps here while nothing is mapped, and between two looks. Both return early when
  // it must end.
  void wait_for_maps();
  void rest(std::uint64_t time_ns);

 private:
  void claim_slot();
  void start_trimmer();
  void end_trimmer();
  void forked();  // in the child
  static bool forked_unseen();

  std::atomic<bool> on_{false};
  std::atomic<bool> changing_{false};
  std::atomic<std::uint64_t> entries_{0};
  std::atomic<std::uint32_t> inside_{0};
  std::atomic<std::uint32_t> wake_{0};  // incremented with every map
  std::atomic<std::uint32_t> stop_{0};  // incremented when the trimmer must end
  std::atomic<int> pid_{0};
  std::atomic<int> trimmer_pid_{0};        // the process that has started one, or tried to
  std::atomic<bool> trimmer_runs_{false};  // trimmer_ must be joined
  pthread_t trimmer_{};
  std::atomic<bool> fork_told_{false};
  Settings settings_;
  Page* page_ = nullptr;
  Slot* slot_ = nullptr;
  Lock lock_;
  Table table_;
};

extern Shim shim;

// The body of the trimmer's thread (trimmer.cc).
void* run_trimmer(void*);

}  // namespace lowtide::ceiling

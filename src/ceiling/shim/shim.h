// shim.h - what the shim knows inside one process, shared by its hooks and its trimmer.
//
// One static instance, usable before any constructor ran. The table is touched only by who holds
// the lock. A trim holds it from the check of a range to its release: a range that munmap, mremap
// or a fixed mmap gives to somebody else is out of the table before they return, and a trim under
// way is waited for.
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
  // Says hello. Without settings in the environment it stays off, and hooks pass through.
  void start(char** environment);
  [[nodiscard]] bool on() const { return on_.load(std::memory_order_acquire); }
  // False spares a hook the lock.
  [[nodiscard]] bool covers_any() const { return entries_.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] const Settings& settings() const { return settings_; }
  [[nodiscard]] Page& page() { return *page_; }
  [[nodiscard]] Slot& slot() { return *slot_; }

  void cover(const Entry& entry);  // and starts the trimmer where none runs
  void uncover(bare::Range range);
  // As in Table, for a call that may fail.
  [[nodiscard]] bool set_aside(bare::Range range);
  void put_back(bare::Range range);
  void drop_aside(bare::Range range);
  void make_writable(bare::Range range);
  void end();  // the process ends: it holds nothing any more

  // Before the process sets a filter of system calls: when this returns the trimmer has ended, and
  // no hook makes a call of its own. False: there is nothing to step back from, and nothing to say
  // afterwards. Else one of the other two: the filter was refused, or it is in force.
  [[nodiscard]] bool step_back();
  void come_again();
  void stay_back();  // makes no system call

  // The bytes of all processes, this one's slot included; with the number that hold any.
  struct Sum {
    std::uint64_t bytes = 0;
    std::uint64_t processes = 0;
  };
  [[nodiscard]] Sum sum();

  // While one lives, step_back() waits.
  class Inside {
   public:
    explicit Inside(Shim& whose) : shim_(whose) { shim_.inside_.fetch_add(1); }
    ~Inside() { shim_.inside_.fetch_sub(1); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Shim& shim_;
  };

  // For as long as it lives, the table stays as its holder leaves it. False: the shim stepped back,
  // and the table is not to be touched.
  class Held {
   public:
    explicit Held(Shim& whose);
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    explicit operator bool() const { return held_; }
    [[nodiscard]] Table& table() { return shim_.table_; }
    // Every change goes through here: a fork in the middle of one must be known to the child.
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

  // The trimmer sleeps here while nothing is mapped, and between two looks; both end early where it
  // is to end.
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
  std::atomic<std::uint32_t> wake_{0};  // goes up with every map
  std::atomic<std::uint32_t> stop_{0};  // goes up when the trimmer is to end
  std::atomic<int> pid_{0};
  std::atomic<int> trimmer_pid_{0};        // the process that has one, or tried to
  std::atomic<bool> trimmer_runs_{false};  // trimmer_ is to be joined
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

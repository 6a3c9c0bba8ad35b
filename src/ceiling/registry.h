// registry.h - all maps of the process that have a limit, and the one thread that trims them.
//
// One lock guards every map and every trim, so removing a map waits for a trim in progress. The
// thread runs while there is a map that can exceed its limit, with all signals blocked, and sleeps
// without a timer otherwise. After a fork the child has the maps but no thread; the next call
// starts one. The lock is held across the fork, because the child continues with the same list.
// Each process has one Registry, which is never destroyed.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "ceiling/trimmed_map.h"
#include "core/mutex.h"
#include "os/per_process.h"

namespace lowtide {

class Registry {
 public:
  [[nodiscard]] static Registry& of_process();

  // From now on the map is trimmed. The caller keeps owning it and must remove it first. Throws
  // IoError if no thread can be started; the map is then not added.
  void add(TrimmedMap& map);
  // When this returns, no trim of the map is in progress and none will start. A second call does
  // nothing.
  void remove(TrimmedMap& map) noexcept;

  // Hold this to use a map. It also starts the thread again after a fork.
  [[nodiscard]] Mutex& mutex() noexcept LOWTIDE_EXCLUDES(mutex_);

  void stop() noexcept;    // ends the thread until add() or resume()
  void resume() noexcept;  // starts it if there is work, unless the system refuses a thread
  [[nodiscard]] bool running() const;

 private:
  // The child of a fork needs its own: a thread of the parent can be neither joined nor destroyed
  // there, and the condition variable may still count it as a waiter.
  struct Trimmer {
    CondVar changed;
    std::thread thread;
  };
  Registry();
  [[nodiscard]] bool running_locked() const noexcept LOWTIDE_REQUIRES(mutex_);
  void start_locked() LOWTIDE_REQUIRES(mutex_);
  void run(Trimmer& trimmer, std::uint64_t stops);
  void account_locked() LOWTIDE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<TrimmedMap*> maps_ LOWTIDE_GUARDED_BY(mutex_);
  PerProcess<Trimmer> trimmer_ LOWTIDE_GUARDED_BY(mutex_);
  bool stopped_ LOWTIDE_GUARDED_BY(mutex_) = false;
  // A thread ends when there were more than at its start.
  std::uint64_t stops_ LOWTIDE_GUARDED_BY(mutex_) = 0;
  // Incremented when maps_ changes: the thread must count again.
  std::uint64_t changes_ LOWTIDE_GUARDED_BY(mutex_) = 0;

  // They lock and unlock in turns.
  static void before_fork() LOWTIDE_UNCHECKED;
  static void after_fork() LOWTIDE_UNCHECKED;  // in both processes
};

}  // namespace lowtide

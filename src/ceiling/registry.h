// registry.h - all maps of the process that have a limit, and the one thread that trims them.
//
// One lock guards every map and every trim, so that who gives a map up has waited for a trim in
// progress. The thread runs while there is a map that can pass its limit, with all signals blocked,
// and sleeps without a timer when there is none. After a fork the child has the maps and no thread:
// it starts with the next call. There is one Registry in a process, never destroyed.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "ceiling/trimmed_map.h"

namespace lowtide {

class Registry {
 public:
  [[nodiscard]] static Registry& of_process();

  // The map is trimmed from now on; it stays the caller's, who removes it first. Throws
  // std::system_error where no thread can be had; the map is not added then.
  void add(TrimmedMap& map);
  // When this returns no trim of the map is under way and none will be. Once more does nothing.
  void remove(TrimmedMap& map) noexcept;

  // Whoever uses a map holds this. It also starts the thread where a fork has ended it.
  [[nodiscard]] std::unique_lock<std::mutex> lock() noexcept;

  void stop() noexcept;    // ends the thread, until add() or resume()
  void resume() noexcept;  // starts it where there is work; where no thread can be had: not
  [[nodiscard]] bool running() const;

 private:
  Registry();
  void start_locked();
  void run(std::uint64_t turn);
  void account_locked();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TrimmedMap*> maps_;
  std::thread thread_;
  bool stopped_ = false;
  std::uint64_t turn_ = 0;     // goes up with every stop: one that starts meanwhile has another
  std::uint64_t changes_ = 0;  // of maps_: the thread must count again

  static void before_fork();
  static void after_fork();
  static void in_child();
};

}  // namespace lowtide

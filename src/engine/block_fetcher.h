// block_fetcher.h - brings whole blocks of objects into memory, once for all sets that wait for
// them, and keeps them on the local disk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "engine/engine.h"
#include "os/memory.h"
#include "tier/kept_object.h"
#include "tier/tier_folder.h"

namespace lowtide {

// By shard; nullptr for one that is not kept.
using KeptObjects = std::vector<std::unique_ptr<KeptObject>>;

// One thread reads, checks and writes copies; requests are in flight meanwhile. Any thread.
class BlockFetcher {
 public:
  // `source` and `objects` must outlive it. `buffers` blocks of memory are used.
  BlockFetcher(Engine& source, KeptObjects& objects, TierFolder& folder, std::size_t buffers);
  ~BlockFetcher();  // every set must be done
  BlockFetcher(const BlockFetcher&) = delete;
  BlockFetcher& operator=(const BlockFetcher&) = delete;

  // Every read must be of a shard that is kept, and inside it. As Engine::submit.
  void submit(ReadSet& set) noexcept LOWTIDE_EXCLUDES(mutex_);

  // Whether new blocks are kept; else why_not() says why. Once false, it stays so.
  [[nodiscard]] bool filling() const noexcept { return filling_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::string why_not() const LOWTIDE_EXCLUDES(mutex_);

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // shard, number of the block
  struct Job {                                          // one set
    ReadSet* set = nullptr;
    std::size_t wants = 0;  // that are not settled
    Outcome outcome;
  };
  struct Want {
    Job* job = nullptr;
    std::uint32_t read = 0;  // index in the set
  };
  using Wants = std::vector<Want>;
  class Slot;

  void start_thread_locked() LOWTIDE_REQUIRES(mutex_);
  void add_locked(Job& job) LOWTIDE_REQUIRES(mutex_);
  [[nodiscard]] static bool given_up(const Want& want);
  void run() LOWTIDE_EXCLUDES(mutex_);
  void start(Slot& slot) LOWTIDE_EXCLUDES(mutex_);
  void finish(Slot& slot) LOWTIDE_EXCLUDES(mutex_);
  void deliver(Slot& slot, const Outcome& outcome) LOWTIDE_EXCLUDES(mutex_);
  void copy(const Slot& slot, const Want& want) const noexcept;
  void settle(const Wants& wants, const Outcome& outcome) LOWTIDE_EXCLUDES(mutex_);
  void keep(const Slot& slot) LOWTIDE_EXCLUDES(mutex_);
  void stop_filling(std::string why) LOWTIDE_EXCLUDES(mutex_);

  Engine& source_;
  KeptObjects& objects_;
  TierFolder& folder_;  // used by the thread
  const Memory memory_;
  std::atomic<bool> filling_{true};

  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Key, Wants> blocks_ LOWTIDE_GUARDED_BY(mutex_);  // wanted, until they are delivered
  std::deque<Key> waiting_ LOWTIDE_GUARDED_BY(mutex_);      // those without a slot
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> idle_ LOWTIDE_GUARDED_BY(mutex_);
  std::vector<Slot*> arrived_ LOWTIDE_GUARDED_BY(mutex_);
  std::string why_not_ LOWTIDE_GUARDED_BY(mutex_);
  bool stopping_ LOWTIDE_GUARDED_BY(mutex_) = false;
  std::thread thread_ LOWTIDE_GUARDED_BY(mutex_);
};

}  // namespace lowtide

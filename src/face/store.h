// store.h - open files with one budget and one engine: what an Array, a Tokens or a Loader reads
// from. It is shared with the batches made from it, so any of them may outlive the others.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/budget.h"
#include "core/mutex.h"
#include "engine/engine.h"
#include "loader/pool.h"
#include "lowtide/options.h"
#include "lowtide/stats.h"
#include "os/files.h"
#include "os/per_process.h"

namespace lowtide {

// Any thread.
class Store {
 public:
  // Throws std::invalid_argument if `least` and the engine's buffers do not fit (`least` is only
  // checked, not kept), and IoError for an engine that is not available here. `held` is what the
  // data set holds for its files; it is claimed together with the tables made here, if it has a
  // name or there are several files. All of it comes from the budget of `lender`, if there is one.
  Store(std::shared_ptr<const Shards> shards, const ReadOptions& options, Budget::Entry least,
        const Budget::Entry& held, std::shared_ptr<Store> lender = nullptr);

  // What it claims for a table of this many files.
  [[nodiscard]] static std::uint64_t table_bytes(std::size_t files);

  [[nodiscard]] Files& files() { return *files_; }
  [[nodiscard]] Budget& budget() { return budget_; }
  [[nodiscard]] SpareBuffers& spare() { return spare_; }
  [[nodiscard]] const ReadOptions& options() const { return options_; }

  [[nodiscard]] std::shared_ptr<Engine> engine();
  // The engine for a run that needs `needs`, until end_run(). If the automatic engine holds all of
  // the data, both do not fit and no other run uses it, a smaller engine replaces it.
  [[nodiscard]] std::shared_ptr<Engine> begin_run(const std::vector<Budget::Entry>& needs);
  void end_run() { runs_.fetch_sub(1, std::memory_order_relaxed); }

  // Reads, waits, and updates the counters. Turns a failure into an exception.
  void read(std::span<const Read> reads);

  void count_delivered(std::uint64_t bytes, std::uint64_t wait_ns);
  void watch(std::shared_ptr<const Pool> pool);  // for Stats::held_by_you_bytes
  [[nodiscard]] Stats stats();

 private:
  void decide_cache();
  [[nodiscard]] ReadOptions decided() const;  // with the cache mode that is in force
  void make_way();
  // Frees what the engine holds, unless it was asked for by name or somebody reads. A store that
  // shares the budget needs the room, and can hold the same data for itself.
  void release_idle_data();
  // Counts what it has read so far.
  [[nodiscard]] std::shared_ptr<Engine> take_engine() LOWTIDE_REQUIRES(mutex_);

  const ReadOptions options_;
  std::shared_ptr<Files> files_;
  const std::shared_ptr<Store> lender_;
  std::optional<Budget> own_budget_;
  Budget& budget_;
  SpareBuffers spare_{budget_};
  Claim shards_claim_;
  CacheMode cache_ = CacheMode::keep;
  std::string cache_reason_;
  mutable Mutex mutex_;
  std::shared_ptr<Engine> engine_ LOWTIDE_GUARDED_BY(mutex_);
  Traffic past_ LOWTIDE_GUARDED_BY(mutex_);  // of an engine that was replaced
  std::vector<std::weak_ptr<const Pool>> pools_ LOWTIDE_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> bytes_asked_{0}, wait_ns_{0};
  std::atomic<int> runs_{0};
};

// A Store that is opened again in a forked child, where the parent's threads do not exist. Any
// thread.
class StoreHolder {
 public:
  // `what` is the user's name for it in messages: "the array". With a `lender` it shares the budget
  // of that one.
  StoreHolder(std::string what, std::shared_ptr<const Shards> shards, const ReadOptions& options,
              Budget::Entry least, Budget::Entry held,
              std::shared_ptr<StoreHolder> lender = nullptr);

  // The store of this process. Throws std::invalid_argument when closed.
  [[nodiscard]] std::shared_ptr<Store> store();
  // The same for a run that began before it was closed.
  [[nodiscard]] std::shared_ptr<Store> store_of_run();
  void close();
  [[nodiscard]] bool closed() const { return closed_; }

  // The holder of these holders' files together, which shares the budget of this one, the first of
  // them. Loaders over the same arrays get the same one while any of them lives.
  using Holders = std::vector<std::shared_ptr<StoreHolder>>;
  [[nodiscard]] std::shared_ptr<StoreHolder> joined(
      const Holders& holders, const std::function<std::shared_ptr<StoreHolder>()>& make);

  const std::shared_ptr<const Shards> shards;
  const ReadOptions options;

 private:
  struct Here {
    Mutex mutex;
    // nullptr: closed, or a child that has not opened it yet.
    std::shared_ptr<Store> store LOWTIDE_GUARDED_BY(mutex);
    std::vector<std::weak_ptr<StoreHolder>> joined LOWTIDE_GUARDED_BY(mutex);
  };
  [[nodiscard]] std::shared_ptr<Store> make_store() const;

  const std::string what_;
  const Budget::Entry least_;
  const Budget::Entry held_;
  const std::shared_ptr<StoreHolder> lender_;
  Holders parts_;                     // if it was joined from them
  std::atomic<bool> closed_ = false;  // a child inherits it; set with the lock held
  PerProcess<Here> here_;
};

}  // namespace lowtide

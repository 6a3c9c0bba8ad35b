// source.h - what an open array is made of. Shared by an Array, its copies and the Batches made
// from it, so that each may be the last to go.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/budget.h"
#include "dataset/rows.h"
#include "engine/engine.h"
#include "loader/pool.h"
#include "loader/schedule.h"
#include "lowtide/array.h"
#include "os/files.h"

namespace lowtide {

// What the files hold, as read from their headers. Immutable.
struct Description {
  std::vector<std::string> paths;
  std::vector<Shard> shards;
  std::unique_ptr<const Rows> rows;
  std::string format;
  OpenOptions options;  // with memory_bytes filled in
};

class Source {
 public:
  // Reads the headers. Throws IoError, FormatError, std::invalid_argument.
  [[nodiscard]] static std::shared_ptr<Source> open(std::vector<std::string> paths,
                                                    const OpenOptions& options);
  // The same array with files, budget, engine and threads of its own: what a forked child needs.
  explicit Source(std::shared_ptr<const Description> description);

  [[nodiscard]] const Description& description() const { return *description_; }
  [[nodiscard]] std::shared_ptr<const Description> shared_description() const {
    return description_;
  }
  [[nodiscard]] const Rows& rows() const { return *description_->rows; }
  [[nodiscard]] Files& files() { return *files_; }
  [[nodiscard]] Budget& budget() { return budget_; }

  [[nodiscard]] std::shared_ptr<Engine> engine();
  // The engine for a loader that needs `needs`: one that holds all of the data by its own choice
  // makes way if both do not fit.
  [[nodiscard]] std::shared_ptr<Engine> engine_for(const std::vector<Budget::Entry>& needs);

  // Reads and waits; turns a failure into an exception. Counts.
  void read(std::span<const Read> reads);

  void count_delivered(std::uint64_t bytes, std::uint64_t wait_ns);
  void watch(std::shared_ptr<const Pool> pool);  // its kept batches are the user's
  [[nodiscard]] Stats stats();

 private:
  void decide_cache();
  [[nodiscard]] std::string layout_text() const;

  std::shared_ptr<const Description> description_;
  std::shared_ptr<Files> files_;
  Budget budget_;
  CacheMode cache_ = CacheMode::keep;
  std::string cache_reason_;
  mutable std::mutex mutex_;
  std::shared_ptr<Engine> engine_;
  Traffic past_;  // of an engine that made way
  std::vector<std::weak_ptr<const Pool>> pools_;
  std::atomic<std::uint64_t> bytes_asked_{0}, wait_ns_{0};
};

}  // namespace lowtide

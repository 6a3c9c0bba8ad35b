// run.h - a sequence of batches for one consumer, of an array or of tokens. It can be moved to
// another place, saved and restored, and it starts again in a forked child.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/accelerator.h"
#include "core/mutex.h"
#include "dataset/dataset.h"
#include "face/store.h"
#include "loader/lookahead.h"
#include "loader/schedule.h"
#include "lowtide/state.h"
#include "order/order.h"
#include "os/per_process.h"

namespace lowtide {

struct RunInputs {
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<StoreHolder> holder;
  std::function<std::unique_ptr<Order>()> make_order;  // called again in a forked child
  std::function<std::uint64_t()> fingerprint;          // of the data; may read it
  State like = {};               // the seed, order and block_size of every state of this run
  bool one_epoch = false;        // it ends with its epoch instead of before the next one
  std::uint64_t most_ahead = 0;  // batches; 0: as many as pay off
  std::vector<Budget::Entry> holds = {};  // held for this run beside its batches; claimed
  std::uint64_t beside_bytes = 0;         // held by the caller while the run exists; claimed
  // Reads what the data set holds, before the first batch. Called once per process.
  std::function<void(Store&)> prepare = nullptr;
  // Copies from the batches, which are pinned for it. A child of a fork does not use it.
  std::shared_ptr<Accelerator> device = nullptr;
};

// One consumer at a time; cancel() from any thread.
class Run {
 public:
  // `schedule` starts with a whole epoch, without skips. Throws std::invalid_argument if the budget
  // is too small, FormatError or IoError if a file changed since it was opened.
  Run(RunInputs inputs, Schedule schedule);
  ~Run();

  // The next batch; an empty one at the end and after cancel().
  [[nodiscard]] Batch next();
  // The same, but nullopt after `timeout`.
  [[nodiscard]] std::optional<Batch> next_for(std::chrono::milliseconds timeout);
  void cancel() noexcept;

  // Where the next batch is.
  [[nodiscard]] Schedule::Turn now() const;
  [[nodiscard]] bool ended() const { return turn_ == turns_; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] Store& store() { return *live_.get().store; }
  [[nodiscard]] const Order& order() { return *live_.get().order; }

  // These are as in Loader. O(1): nothing is replayed.
  void seek(std::uint64_t step, std::uint64_t epoch);
  void skip(std::uint64_t first, std::uint64_t last, std::uint64_t epoch);
  [[nodiscard]] State state() const;
  void restore(const State& state);

  // Throws std::out_of_range for an epoch that a mixture of this size does not have; `what` names
  // the call.
  void check_epoch(const char* what, std::uint64_t epoch) const;
  // Positions of a mixture before an epoch; nullopt if the epoch would start before position 0.
  [[nodiscard]] std::optional<std::uint64_t> base_of(std::uint64_t epoch) const;

 private:
  // What belongs to one process.
  struct Live {
    Live(std::shared_ptr<Store> opened, std::unique_ptr<Order> made)
        : store(std::move(opened)), order(std::move(made)) {}
    ~Live() { end(); }
    void end() LOWTIDE_EXCLUDES(mutex);
    [[nodiscard]] Lookahead* reading() LOWTIDE_EXCLUDES(mutex);

    const std::shared_ptr<Store> store;
    const std::unique_ptr<Order> order;
    std::shared_ptr<Accelerator> device = nullptr;  // set by the constructor of the run
    std::vector<Claim> claims = {};                 // of the consumer
    std::vector<Claim> beside = {};                 // of the caller, also when all turns are done
    std::shared_ptr<Engine> engine = nullptr;  // of the consumer; nullptr: the run is not begun
    bool prepared = false;                     // of the consumer
    Mutex mutex;
    // nullptr: all turns are done, or this process has not begun.
    std::unique_ptr<Lookahead> lookahead LOWTIDE_GUARDED_BY(mutex) = nullptr;
  };

  [[nodiscard]] Lookahead& start(Live& live);
  void restart(Schedule schedule);
  [[nodiscard]] std::uint64_t fingerprint() const;
  [[nodiscard]] State place() const;  // the state without the fingerprint, which needs reads
  void check(const State& state) const;
  void go_to(const State& place);

  const RunInputs in_;
  const Schedule origin_;  // from the start of the first epoch, without skips
  PerProcess<Live> live_;
  Schedule schedule_;  // from where the run was started or moved to
  std::uint64_t turns_ = 0;
  std::uint64_t turn_ = 0;  // delivered
  std::atomic<bool> cancelled_ = false;
  mutable std::optional<std::uint64_t> fingerprint_;
};

}  // namespace lowtide

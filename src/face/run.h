// run.h - batches on their way to one consumer, of an array or of tokens: started, moved and
// ended, and begun again in a forked child.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "dataset/dataset.h"
#include "face/store.h"
#include "loader/lookahead.h"
#include "loader/schedule.h"
#include "order/order.h"

namespace lowtide {

struct RunInputs {
  std::shared_ptr<const Dataset> dataset;
  std::shared_ptr<StoreHolder> holder;
  std::function<std::unique_ptr<Order>()> make_order;  // called again in a forked child
  std::uint64_t most_ahead = 0;                        // batches; 0: as many as pay
  std::vector<Budget::Entry> holds = {};               // by the caller, for this run: claimed
};

// One consumer at a time; cancel() from any thread.
class Run {
 public:
  // Starts reading at once. Throws std::invalid_argument where the budget is too small; what a
  // file that changed since it was opened deserves.
  Run(RunInputs inputs, Schedule schedule);
  ~Run();

  // The next batch; nullopt at the end, after cancel(), or with *timed_out after `timeout`.
  [[nodiscard]] std::optional<Lease> next(std::chrono::milliseconds timeout, bool* timed_out);

  // Goes on from a turn of another schedule, or of the same one. O(1): nothing is replayed.
  void restart(Schedule schedule, std::uint64_t turn);
  void cancel() noexcept;

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] std::uint64_t turn() const { return turn_; }    // delivered so far
  [[nodiscard]] std::uint64_t turns() const { return turns_; }  // in all
  [[nodiscard]] Store& store();
  [[nodiscard]] const Order& order();

 private:
  void start();
  void end();
  void leave_to_parent();
  void notice_fork();

  const RunInputs in_;
  int pid_;
  std::shared_ptr<Store> store_;
  std::vector<Claim> claims_;
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<Order> order_;
  Schedule schedule_;
  std::uint64_t turns_ = 0;
  std::uint64_t turn_ = 0;
  std::mutex mutex_;  // lookahead_ and cancelled_: cancel comes from another thread
  std::atomic<bool> cancelled_ = false;
  std::unique_ptr<Lookahead> lookahead_;  // nullptr: all turns are done
};

}  // namespace lowtide

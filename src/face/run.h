// run.h - a sequence of batches for one consumer, of an array or of tokens. It can be moved to
// another place, and it starts again in a forked child.
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
  std::uint64_t most_ahead = 0;                        // batches; 0: as many as pay off
  std::vector<Budget::Entry> holds = {};               // held by the caller for this run; claimed
};

// One consumer at a time; cancel() from any thread.
class Run {
 public:
  // Starts reading at once. Throws std::invalid_argument if the budget is too small, FormatError
  // or IoError if a file changed since it was opened.
  Run(RunInputs inputs, Schedule schedule);
  ~Run();

  // The next batch; an empty one at the end and after cancel().
  [[nodiscard]] Batch next();
  // The same, but nullopt after `timeout`.
  [[nodiscard]] std::optional<Batch> next_for(std::chrono::milliseconds timeout);

  // Continues from a turn of the same or another schedule. O(1): nothing is replayed.
  void restart(Schedule schedule, std::uint64_t turn);
  void cancel() noexcept;

  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  [[nodiscard]] std::uint64_t turn() const { return turn_; }    // delivered so far
  [[nodiscard]] std::uint64_t turns() const { return turns_; }  // in total
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
  std::mutex mutex_;  // guards lookahead_ and cancelled_, because any thread may cancel
  std::atomic<bool> cancelled_ = false;
  std::unique_ptr<Lookahead> lookahead_;  // nullptr: all turns are done, or not started here yet
};

}  // namespace lowtide

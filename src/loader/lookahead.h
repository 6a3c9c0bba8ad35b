// lookahead.h - WHEN: turns a data set, an order and an engine into batches, ahead of the consumer
// and within the budget.
//
// A thread of its own plans (PlanLoop) and passes finished batches on (BatchQueue). Samples are
// read straight into the upcoming batches: in the order of their turns, or by a sweep in file order
// over as many batches as the budget allows, if they are then so close together that neighbours can
// be read together. It starts with one batch, so that the first one comes at once. It does not stop
// between epochs.
//
// What it holds beyond the least is a Share of the budget.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "core/budget.h"
#include "loader/batch_queue.h"
#include "loader/plan_loop.h"
#include "loader/pool.h"
#include "loader/schedule.h"

namespace lowtide {

// One consumer at a time; cancel() from any thread.
class Lookahead {
 public:
  // Claims memory for at least one batch; otherwise throws std::invalid_argument, which says what
  // was needed. Reads nothing and starts no thread. Later it uses what is free for at most
  // `most_ahead` batches ahead (0: as many as pay off). Starts at schedule turn `first_turn`.
  Lookahead(const LookaheadInputs& inputs, const Schedule& schedule, std::uint64_t first_turn,
            std::uint64_t most_ahead = 0);
  ~Lookahead();  // cancels; waits for the reads that the kernel has started
  Lookahead(const Lookahead&) = delete;
  Lookahead& operator=(const Lookahead&) = delete;

  // The next batch; an empty one at the end and after cancel(); nullopt after `timeout`. The first
  // call starts the reading. Throws the first error of a read after the batches before it; the next
  // call tries that read again. Throws IoError if no thread can be started.
  [[nodiscard]] std::optional<Batch> next(std::chrono::milliseconds timeout);
  void cancel() noexcept { queue_.cancel(); }

  [[nodiscard]] std::shared_ptr<const Pool> pool() const { return pool_; }

 private:
  void start();
  [[nodiscard]] std::shared_ptr<Pool> make_pool() const;

  const LookaheadInputs in_;
  const Schedule schedule_;
  const std::uint64_t first_turn_;
  const std::uint64_t most_ahead_;
  const std::vector<Claim> claims_;
  const std::shared_ptr<Pool> pool_;
  BatchQueue queue_;
  // Set by the first next(), on the consumer's thread. The share is destroyed first of all, because
  // claims on other threads call back to the queue until then.
  std::unique_ptr<PlanLoop> loop_;
  std::unique_ptr<Share> share_;
  std::thread planner_;
};

}  // namespace lowtide
